"""Commands that begin a rollout, steer it or go back."""

from typing import Self

from pydantic import model_validator

from domain.commands.answers import Activated, Steered, Turned
from domain.commands.base import DeploymentCommand, Replicas, StartingCommand
from domain.words.names import Name


class ActivateRevision(StartingCommand):
    """Make a revision the running one."""

    task = "rollway.activate_revision"
    answer = Activated

    revision: Name
    """Its name."""
    supersede: bool = False
    """Leave a rollout to another revision that is under way."""
    desired_replicas: Replicas | None = None
    """A new size that comes with the new revision, and goes again should it be rolled back."""


class Restart(StartingCommand):
    """Roll the same revision again, with the policy and its budgets: a secret or a file that it reads has changed."""

    task = "rollway.restart"
    answer = Activated


class Pause(DeploymentCommand):
    """Hold a rollout where it is: nothing is created or drained, and its clocks stand still."""

    task = "rollway.pause"
    answer = Steered


class Resume(DeploymentCommand):
    """Go on with a paused rollout; its deadlines move by the time it was paused."""

    task = "rollway.resume"
    answer = Steered


class Promote(DeploymentCommand):
    """Move the traffic to a green set, or to the next weight of a canary, as soon as it is healthy."""

    task = "rollway.promote"
    answer = Steered

    full: bool = False
    """Past all weights of a canary: the rest follows at once; needs a reason."""

    @model_validator(mode="after")
    def _says_why(self) -> Self:
        if self.full and not self.reason:
            raise ValueError("full needs a reason, for the history")
        return self


class Abort(DeploymentCommand):
    """Leave a rollout: old and new trade places, within the same budget."""

    task = "rollway.abort"
    answer = Steered


class Undo(DeploymentCommand):
    """Go back, at once: a rollout under way turns back, else the deployment returns to what ran before."""

    task = "rollway.undo"
    answer = Turned

    revision: Name | None = None
    """Left out: the one from before the current one that was not rolled back itself."""


class Retry(StartingCommand):
    """Begin the last rollout that was rolled back once more; one that is just rolling back turns forward again."""

    task = "rollway.retry"
    answer = Turned
