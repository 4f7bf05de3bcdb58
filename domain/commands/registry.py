"""Every command, by the name of its task: tasks, HTTP, buttons and plans are made from these."""

import json
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from domain.commands import deployment_commands, fleet_commands, replica_commands, rollout_commands
from domain.commands.apply import document
from domain.commands.base import QUERIES, Command, Query
from domain.text.errors import InvalidInputError, RollwayError, TooLargeError
from domain.text.storable import storable, unstorable

COMMANDS: dict[str, type[Command]] = {
    command.task: command
    for module in (
        document,
        deployment_commands,
        rollout_commands,
        replica_commands,
        fleet_commands,
    )
    for command in vars(module).values()
    if isinstance(command, type) and issubclass(command, Command) and command.__module__ == module.__name__
}
"""The command classes of these modules, in the order of their definition."""


M = TypeVar("M", bound=BaseModel)


MOST_COMMAND_BYTES = 256 * 1024
"""The largest command as JSON, with everything in it, such as the environment of a revision."""


_WORDS = frozenset({"actor", "reason", "detail"})
"""Texts for people: characters that cannot be stored or shown are replaced there, and refused everywhere else."""


class UnknownCommandError(RollwayError):
    """No command has that name."""


def parse_command(task: str, payload: object) -> Command:
    """Raises UnknownCommandError, TooLargeError, and InvalidInputError with each wrong field and a right value."""
    parsed = _parsed(task, payload, COMMANDS)
    size = len(parsed.model_dump_json().encode())
    if size > MOST_COMMAND_BYTES:
        raise TooLargeError.of_size(size, MOST_COMMAND_BYTES, _large_part(parsed.model_dump(mode="json")))
    return parsed


def parse_query(task: str, payload: object) -> Query:
    """Raises UnknownCommandError, and InvalidInputError with each wrong field and a right value."""
    return _parsed(task, payload, QUERIES)


def _parsed(task: str, payload: object, kinds: Mapping[str, type[M]]) -> M:
    kind = kinds.get(task)
    if kind is None:
        raise UnknownCommandError(f"{task} is no command; the commands are {', '.join(sorted((*COMMANDS, *QUERIES)))}")
    if not isinstance(payload, dict):
        raise InvalidInputError(
            f"the payload must be fields, each with its value, and no {_kind_in_words(payload)}", field=""
        )
    values = _with_storable_words(payload)
    if fault := unstorable(values):
        field, why = fault
        raise InvalidInputError.at(field, why if field else f"the payload {why}")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise InvalidInputError.of(error, model=kind) from None


def _kind_in_words(payload: object) -> str:
    match payload:
        case None:
            return "nothing"
        case str():
            return "text"
        case list():
            return "list"
    return "number"


def _with_storable_words(payload: Mapping[str, object]) -> dict[str, object]:
    return {
        name: storable(value) if name in _WORDS and isinstance(value, str) else value for name, value in payload.items()
    }


def _large_part(value: object, path: str = "") -> str:
    """The path of the large part: deeper as long as one field is more than half of all."""
    items = dict(enumerate(value)) if isinstance(value, list) else value
    if not isinstance(items, dict) or not items:
        return path
    sizes = {name: len(json.dumps(item)) for name, item in items.items()}
    name = max(sizes, key=sizes.__getitem__)
    return _large_part(items[name], f"{path}.{name}".lstrip(".")) if 2 * sizes[name] > sum(sizes.values()) else path
