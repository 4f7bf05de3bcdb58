"""People without a database: what they ask with, and what a database would remember of past rollouts for them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from domain.cycle.rollout import size_again
from domain.model.deployment import Deployment, Rollout
from domain.model.policy import DeploymentPolicy
from domain.model.states import RolloutOutcome
from domain.steering.activation import ActivationRequest, activate
from domain.steering.command_effect import Context, Effect
from domain.steering.rollout_history import EndedRollout, KnownRevision, way_back
from domain.steering.verbs import abort, destroy, pause, promote, resume, retry, scale, undo


@dataclass(frozen=True, slots=True)
class Ended:
    """A rollout that is over."""

    rollout: Rollout
    outcome: RolloutOutcome


def asking(deployment: Deployment, now: datetime) -> Context:
    """Somebody, with an id for the next rollout that no earlier one has had."""
    return Context("by ann", now, UUID(int=0xE00000 + deployment.version))


def ask(command: str, deployment: Deployment, now: datetime) -> Effect:
    """A command in words: "pause", "scale to 5"."""
    who = asking(deployment, now)
    match command.split():
        case ["pause"]:
            return pause(deployment, who)
        case ["resume"]:
            return resume(deployment, who)
        case ["promote"]:
            return promote(deployment)
        case ["abort"]:
            return abort(deployment, who)
        case ["abort", "now"]:
            return abort(deployment, who, now=True)
        case ["undo"]:
            return undo(deployment, None, who)
        case ["retry"]:
            return retry(deployment, None, None, who)
        case ["destroy"]:
            return destroy(deployment, who)
        case ["scale", "to", count]:
            return scale(deployment, int(count))
    raise AssertionError(command)


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
) -> Effect:
    wanted = request(deployment, revision, policy, supersede=supersede, desired=desired)
    return activate(deployment, wanted, asking(deployment, now))


def undo_rollout(
    deployment: Deployment, policy: DeploymentPolicy | None, ended: Sequence[Ended], now: datetime
) -> Effect:
    """To where the rollouts that ended lead back, or by turning the one that runs."""
    if deployment.rollout is not None:
        return undo(deployment, None, asking(deployment, now))
    remembered = (RolloutOutcome.COMPLETED, RolloutOutcome.ROLLED_BACK)
    back = way_back(deployment, [told(last, now) for last in ended if last.outcome in remembered], now)
    return undo(
        deployment, request(deployment, back.revision.id, policy, desired=back.desired), asking(deployment, now)
    )


def told(ended: Ended, now: datetime) -> EndedRollout:
    """As the database tells it, long ago; each revision has a content of its own."""
    rollout = ended.rollout
    came_from, went_to = (
        KnownRevision(revision, str(revision), str(revision))
        for revision in (rollout.from_revision_id, rollout.to_revision_id)
    )
    return EndedRollout(
        came_from,
        went_to,
        ended.outcome,
        now - timedelta(days=1),
        rollout.is_undo,
        rollout.desired_at_start,
        rollout.desired_with_revision,
    )


def retry_rollout(
    deployment: Deployment, policy: DeploymentPolicy | None, ended: Sequence[Ended], now: datetime
) -> Effect:
    """The rollout that runs, or the last one that ended."""
    last = deployment.rollout or (ended[-1].rollout if ended else None)
    outcome = None if deployment.rollout or not ended else ended[-1].outcome
    if last is None:
        return retry(deployment, None, None, asking(deployment, now))
    desired = size_again(deployment, last.desired_with_revision, last.desired_at_start)
    again = replace(request(deployment, last.to_revision_id, policy, desired=desired), is_undo=last.is_undo)
    return retry(deployment, again, outcome, asking(deployment, now))
