"""Every command, by the name of its task: tasks, HTTP, buttons and plans are made from these."""

from dataclasses import dataclass

from domain.commands import deployment, fleet, replicas, rollout, subscriptions
from domain.commands.apply import document
from domain.commands.base import Command
from domain.commands.fields import CommandField, fields_of

COMMANDS: dict[str, type[Command]] = {
    command.task: command
    for module in (document, deployment, rollout, replicas, fleet, subscriptions)
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
