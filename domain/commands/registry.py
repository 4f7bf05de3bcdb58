"""Every command, by the name of its task: tasks, HTTP, buttons and plans are made from these."""

from dataclasses import dataclass

from domain.commands import apply, deployment, replicas, rollout, subscriptions, windows
from domain.commands.base import Command, DeploymentCommand

COMMANDS: dict[str, type[Command]] = {
    command.task: command
    for module in (apply, deployment, rollout, replicas, subscriptions, windows)
    for command in vars(module).values()
    if isinstance(command, type) and issubclass(command, Command) and command.__module__ == module.__name__
}
"""The classes of these modules, in the order in which they stand there: what is written there is known everywhere."""

PLANNED: dict[str, type[DeploymentCommand]] = {
    command.door.verb: command
    for command in COMMANDS.values()
    if command.door.is_planned and issubclass(command, DeploymentCommand)
}
"""What can be planned, by its verb."""


@dataclass(frozen=True, slots=True)
class Button:
    """A command as a page shows it: `what` it does, in a sentence; `fields`: what a person must say for it."""

    verb: str
    label: str
    what: str
    fields: tuple[str, ...]


def button_of(verb: str) -> Button:
    """The button of what can be planned."""
    command = PLANNED[verb]
    own = [name for name in command.model_fields if name not in DeploymentCommand.model_fields]
    needed = tuple(name for name in own if command.model_fields[name].is_required())
    return Button(verb, command.door.label, str(command.__doc__), needed)
