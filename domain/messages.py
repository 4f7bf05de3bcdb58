"""A message becomes a command: checked field by field, and refused with the field's name and what would be right."""

import json

from pydantic import ValidationError

from domain.commands import COMMANDS, Command
from domain.errors import InvalidInputError, TooLargeError, UnknownCommandError
from domain.text import storable, unstorable

MOST_COMMAND_BYTES = 256 * 1024
"""As JSON, with everything that is in it, such as the environment of a revision."""

_WORDS = frozenset({"actor", "reason", "detail"})
"""Said for people: what cannot be stored or shown is replaced there, and refused everywhere else."""


def parse_command(task: str, payload: object) -> Command:
    """Raises UnknownCommandError, TooLargeError, and InvalidInputError naming each wrong field and what is right."""
    command = COMMANDS.get(task)
    if command is None:
        raise UnknownCommandError(f"{task} is no command; the commands are {', '.join(sorted(COMMANDS))}")
    given = _with_storable_words(payload)
    if fault := unstorable(given):
        field, why = fault
        raise InvalidInputError(f"{field}: {why}" if field else f"the payload {why}", field=field)
    try:
        parsed = command.model_validate(given)
    except ValidationError as error:
        raise InvalidInputError.of(error) from None
    size = len(parsed.model_dump_json().encode())
    if size > MOST_COMMAND_BYTES:
        raise TooLargeError.of_size(size, MOST_COMMAND_BYTES, _large_part(parsed.model_dump(mode="json")))
    return parsed


def _with_storable_words(payload: object) -> object:
    if not isinstance(payload, dict):
        return payload
    return {
        name: storable(value) if name in _WORDS and isinstance(value, str) else value for name, value in payload.items()
    }


def _large_part(value: object, path: str = "") -> str:
    """The path of what makes it large: further down as long as one field is more than half of all."""
    if not isinstance(value, dict) or not value:
        return path
    sizes = {name: len(json.dumps(item)) for name, item in value.items()}
    name = max(sizes, key=sizes.__getitem__)
    return _large_part(value[name], f"{path}.{name}".lstrip(".")) if 2 * sizes[name] > sum(sizes.values()) else path
