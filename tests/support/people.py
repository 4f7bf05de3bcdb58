"""People without a database: what they ask with, and what a database would remember of past rollouts for them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.activation import ActivationRequest, activate
from domain.model import Deployment, Rollout, RolloutOutcome
from domain.policy import DeploymentPolicy
from domain.steered import Asking, Steered
from domain.steering import retry, undo


@dataclass(frozen=True, slots=True)
class Ended:
    """A rollout that is over."""

    rollout: Rollout
    outcome: RolloutOutcome


def asking(deployment: Deployment, now: datetime) -> Asking:
    """Somebody, with an id for the next rollout that no earlier one has had."""
    return Asking("by ann", now, UUID(int=0xE00000 + deployment.version))


def request(
    deployment: Deployment,
    revision: UUID,
    policy: DeploymentPolicy | None,
    *,
    supersede: bool = False,
    desired: int | None = None,
) -> ActivationRequest:
    """To activate that revision."""
    deploying = str(deployment.deploying_revision_id) if deployment.deploying_revision_id else None
    return ActivationRequest(revision, str(revision), deploying, policy, supersede, desired)


def activate_revision(
    deployment: Deployment,
    revision: UUID,
    policy: DeploymentPolicy | None,
    now: datetime,
    *,
    supersede: bool = False,
    desired: int | None = None,
) -> Steered:
    wanted = request(deployment, revision, policy, supersede=supersede, desired=desired)
    return activate(deployment, wanted, asking(deployment, now))


def undo_rollout(
    deployment: Deployment, policy: DeploymentPolicy | None, ended: Sequence[Ended], now: datetime
) -> Steered:
    """To the revision from before the current one, by the rollouts that ended."""
    before = [
        last.rollout.from_revision_id
        for last in reversed(ended)
        if last.outcome is RolloutOutcome.COMPLETED and last.rollout.to_revision_id == deployment.current_revision_id
    ]
    previous = request(deployment, before[0], policy) if before else None
    return undo(deployment, previous, asking(deployment, now), named=False)


def retry_rollout(
    deployment: Deployment, policy: DeploymentPolicy | None, ended: Sequence[Ended], now: datetime
) -> Steered:
    """The rollout that runs, or the last one that ended."""
    last = deployment.rollout or (ended[-1].rollout if ended else None)
    outcome = None if deployment.rollout or not ended else ended[-1].outcome
    again = request(deployment, last.to_revision_id, policy, desired=last.desired_with_revision) if last else None
    return retry(deployment, again, outcome, asking(deployment, now))
