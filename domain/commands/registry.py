"""Every command, by the name of its task: tasks, HTTP, buttons and plans are made from these."""

from dataclasses import dataclass

from domain.commands.apply import Apply
from domain.commands.base import Command, DeploymentCommand
from domain.commands.deployment import (
    AddRevision,
    CreateDeployment,
    Destroy,
    Scale,
    SetAutoscalingRules,
    SetPolicy,
    SetTraffic,
)
from domain.commands.replicas import ForgetHost, PushMetric, ReportRoute
from domain.commands.rollout import Abort, ActivateRevision, Pause, Promote, Restart, Resume, Retry, RollingUpdate, Undo
from domain.commands.subscriptions import DeleteSubscription, SetSubscription
from domain.commands.windows import DeleteFreeze, DeleteGroup, SetFreeze, SetGroup

COMMANDS: dict[str, type[Command]] = {
    command.task: command
    for command in (
        Apply,
        CreateDeployment,
        AddRevision,
        SetPolicy,
        SetTraffic,
        SetAutoscalingRules,
        PushMetric,
        ActivateRevision,
        RollingUpdate,
        Restart,
        Pause,
        Resume,
        Promote,
        Abort,
        Undo,
        Retry,
        Scale,
        Destroy,
        ForgetHost,
        ReportRoute,
        SetSubscription,
        DeleteSubscription,
        SetFreeze,
        DeleteFreeze,
        SetGroup,
        DeleteGroup,
    )
}

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
