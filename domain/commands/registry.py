"""Every command, by the name of its task."""

from domain.commands.base import Command
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
from domain.commands.rollout import Abort, ActivateRevision, Pause, Promote, Restart, Resume, Retry, Undo
from domain.commands.subscriptions import DeleteSubscription, SetSubscription
from domain.commands.windows import DeleteFreeze, DeleteGroup, SetFreeze, SetGroup

COMMANDS: dict[str, type[Command]] = {
    command.task: command
    for command in (
        CreateDeployment,
        AddRevision,
        SetPolicy,
        SetTraffic,
        SetAutoscalingRules,
        PushMetric,
        ActivateRevision,
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
