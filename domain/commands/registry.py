"""Every command, by the name of its task: tasks, HTTP, buttons and plans are made from these."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from domain.commands import (
    deployment_commands,
    fleet_commands,
    replica_commands,
    rollout_commands,
    subscription_commands,
)
from domain.commands.apply import document
from domain.commands.base import QUERIES, Command, DeploymentCommand, Query
from domain.commands.fields import CommandField, fields_of
from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome
from domain.steering import verbs
from domain.steering.activation import ActivationRequest, activate
from domain.steering.command_effect import Asking, Steered
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
        subscription_commands,
    )
    for command in vars(module).values()
    if isinstance(command, type) and issubclass(command, Command) and command.__module__ == module.__name__
}
"""The classes of these modules, in the order in which they stand there: what is written there is known everywhere."""


@dataclass(frozen=True, slots=True)
class Button:
    """A command as a page shows it.

    `verb`: its word in the path of the page. `what`: what it does, in a sentence. `fields`: what a person may say for
    it. `replaces`: whether it sets what a read of its own path shows. `is_planned`: whether it can be planned.
    """

    verb: str
    label: str
    what: str
    fields: tuple[CommandField, ...]
    replaces: bool
    is_planned: bool


def button_of(verb: str) -> Button:
    """The button of that verb."""
    command = BUTTONS[verb]
    door, what = command.door, str(command.__doc__).partition("\n")[0]
    return Button(verb, door.label, what, fields_of(command), door.method == "PUT", door.is_planned)


def _verb_of(command: type[Command]) -> str:
    """The last word of the path, or where that is a name the words of the task, such as `set-freeze`."""
    verb = command.door.verb
    return command.task.rpartition(".")[2].replace("_", "-") if verb.startswith("{") else verb


BUTTONS: dict[str, type[Command]] = {_verb_of(each): each for each in COMMANDS.values() if each.door.label}
"""What has a button, by its verb."""


class Case(Protocol):
    """A command to a deployment. What a rule needs to know beside the snapshot is asked for, and read, by that rule."""

    @property
    def deployment(self) -> Deployment:
        """The snapshot."""

    @property
    def command(self) -> Any:  # noqa: ANN401  (the class that the rule is for)
        """The command, with its own fields."""

    @property
    def asking(self) -> Asking:
        """The asker, and the time."""

    def asked_for(self) -> ActivationRequest:
        """The revision that an activation names. Raises RevisionNotFoundError."""

    def changed(self) -> ActivationRequest:
        """The revision that a rolling update names or makes."""

    def same_again(self) -> ActivationRequest:
        """A new revision with the content of the current one. Raises WrongStateError."""

    def way_back(self) -> ActivationRequest | None:
        """The revision that an undo goes to; None where a rollout can turn back."""

    def start_seconds(self) -> float | None:
        """How long replicas took to come up of late; None where none has."""

    def last_rollout(self) -> tuple[ActivationRequest | None, RolloutOutcome | None]:
        """The revision of the last rollout, and how it ended."""


RULES: dict[type[DeploymentCommand], Callable[[Case], Steered]] = {
    rollout_commands.Resume: lambda case: verbs.resume(case.deployment, case.asking),
    rollout_commands.Promote: lambda case: verbs.promote(case.deployment, full=case.command.full),
    rollout_commands.Pause: lambda case: verbs.pause(case.deployment, case.asking),
    rollout_commands.Abort: lambda case: verbs.abort(
        case.deployment, case.asking, now=case.command.now, start_seconds=case.start_seconds()
    ),
    rollout_commands.ActivateRevision: lambda case: activate(case.deployment, case.asked_for(), case.asking),
    rollout_commands.RollingUpdate: lambda case: activate(case.deployment, case.changed(), case.asking),
    rollout_commands.Undo: lambda case: verbs.undo(
        case.deployment, case.way_back(), case.asking, now=case.command.now, start_seconds=case.start_seconds()
    ),
    rollout_commands.Retry: lambda case: verbs.retry(
        case.deployment, *case.last_rollout(), case.asking, now=case.command.now
    ),
    rollout_commands.Restart: lambda case: activate(case.deployment, case.same_again(), case.asking),
    deployment_commands.Scale: lambda case: verbs.scale(
        case.deployment, case.command.desired_replicas, with_rollout=case.command.with_rollout
    ),
    deployment_commands.Destroy: lambda case: verbs.destroy(case.deployment, case.asking, force=case.command.force),
}
"""By the command, in the order of their buttons: first what leads out of waiting."""


M = TypeVar("M", bound=BaseModel)


MOST_COMMAND_BYTES = 256 * 1024
"""As JSON, with everything that is in it, such as the environment of a revision."""


_WORDS = frozenset({"actor", "reason", "detail"})
"""Said for people: what cannot be stored or shown is replaced there, and refused everywhere else."""


class UnknownCommandError(RollwayError):
    """No command has that name."""


def parse_command(task: str, payload: object) -> Command:
    """Raises UnknownCommandError, TooLargeError, and InvalidInputError naming each wrong field and what is right."""
    parsed = _parsed(task, payload, COMMANDS)
    size = len(parsed.model_dump_json().encode())
    if size > MOST_COMMAND_BYTES:
        raise TooLargeError.of_size(size, MOST_COMMAND_BYTES, _large_part(parsed.model_dump(mode="json")))
    return parsed


def parse_query(task: str, payload: object) -> Query:
    """Raises UnknownCommandError, and InvalidInputError naming each wrong field and what would be right."""
    return _parsed(task, payload, QUERIES)


def _parsed(task: str, payload: object, known: Mapping[str, type[M]]) -> M:
    kind = known.get(task)
    if kind is None:
        raise UnknownCommandError(f"{task} is no command; the commands are {', '.join(sorted((*COMMANDS, *QUERIES)))}")
    if not isinstance(payload, dict):
        raise InvalidInputError(f"the payload must be fields, each with its value, and no {_said(payload)}", field="")
    given = _with_storable_words(payload)
    if fault := unstorable(given):
        field, why = fault
        raise InvalidInputError(f"{field}: {why}" if field else f"the payload {why}", field=field)
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise InvalidInputError.of(error, model=kind) from None


def _said(payload: object) -> str:
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
    """The path of what makes it large: further down as long as one field is more than half of all."""
    items = dict(enumerate(value)) if isinstance(value, list) else value
    if not isinstance(items, dict) or not items:
        return path
    sizes = {name: len(json.dumps(item)) for name, item in items.items()}
    name = max(sizes, key=sizes.__getitem__)
    return _large_part(items[name], f"{path}.{name}".lstrip(".")) if 2 * sizes[name] > sum(sizes.values()) else path
