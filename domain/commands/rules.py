"""The rules of commands that steer a deployment: which pure function decides each. Adding one is a line in RULES."""

from collections.abc import Callable
from typing import Any, Protocol

from domain.commands import deployment, rollout
from domain.commands.base import DeploymentCommand
from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome
from domain.steering import verbs
from domain.steering.activation import ActivationRequest, activate
from domain.steering.steered import Asking, Steered
from domain.steering.trying_again import retry


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
    rollout.Resume: lambda case: verbs.resume(case.deployment, case.asking),
    rollout.Promote: lambda case: verbs.promote(case.deployment, full=case.command.full),
    rollout.Pause: lambda case: verbs.pause(case.deployment, case.asking),
    rollout.Abort: lambda case: verbs.abort(
        case.deployment, case.asking, now=case.command.now, start_seconds=case.start_seconds()
    ),
    rollout.ActivateRevision: lambda case: activate(case.deployment, case.asked_for(), case.asking),
    rollout.RollingUpdate: lambda case: activate(case.deployment, case.changed(), case.asking),
    rollout.Undo: lambda case: verbs.undo(
        case.deployment, case.way_back(), case.asking, now=case.command.now, start_seconds=case.start_seconds()
    ),
    rollout.Retry: lambda case: retry(case.deployment, *case.last_rollout(), case.asking, now=case.command.now),
    rollout.Restart: lambda case: activate(case.deployment, case.same_again(), case.asking),
    deployment.Scale: lambda case: verbs.scale(
        case.deployment, case.command.desired_replicas, with_rollout=case.command.with_rollout
    ),
    deployment.Destroy: lambda case: verbs.destroy(case.deployment, case.asking, force=case.command.force),
}
"""By the command, in the order of their buttons: first what leads out of waiting."""
