"""What the modules of db/commands do to a deployment, as pure functions of a snapshot.

Each gives the snapshot after the command, or raises what the command is refused with.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from domain.activation import Activation, ActivationRequest, decide_activation
from domain.errors import NoPreviousRevisionError, NoRolloutError, WrongStateError
from domain.model import Deployment, DeploymentSubStep, Lifecycle, Rollout, RolloutOutcome
from domain.policy import DeploymentPolicy
from domain.strategies import STRATEGIES
from tests.support.pictures import DESTROYING, PROVISIONING, ROLLING_BACK


@dataclass(frozen=True, slots=True)
class Ended:
    """A rollout that is over."""

    rollout: Rollout
    outcome: RolloutOutcome


def activate(
    one: Deployment,
    revision: UUID,
    policy: DeploymentPolicy | None,
    now: datetime,
    *,
    supersede: bool = False,
    desired: int | None = None,
) -> Deployment:
    lent = policy or (one.rollout.policy if one.rollout else None)
    request = ActivationRequest(revision, str(revision), str(one.deploying_revision_id), lent, supersede)
    match decide_activation(one, request):
        case Activation.FIRST | Activation.MOVED:
            return replace(
                one,
                current_revision_id=revision,
                desired_replicas=_or(desired, one),
                degraded_reason=None,
                retry_at=None,
            )
        case Activation.SUPERSEDED if revision == one.current_revision_id:
            return _turned_back(one, now)
        case Activation.SUPERSEDED | Activation.BEGUN:
            assert lent is not None
            return _begun(one, revision, lent, now, desired)
        case Activation.RESUMED | Activation.CONVERGING | Activation.ALREADY_ACTIVE:
            return one


def pause(one: Deployment, now: datetime) -> Deployment:
    rollout = _rollout(one)
    stopped = replace(rollout, clock_stopped_at=rollout.clock_stopped_at or now)
    return one if one.paused_at else replace(one, paused_at=now, rollout=stopped)


def resume(one: Deployment, now: datetime) -> Deployment:  # noqa: ARG001  (every command has the same form)
    _rollout(one)
    if one.paused_at is None:
        raise WrongStateError("not paused")
    return replace(one, paused_at=None)


def promote(one: Deployment, now: datetime) -> Deployment:  # noqa: ARG001
    rollout = _rollout(one)
    if not STRATEGIES[rollout.policy.strategy].can_be_promoted:
        raise WrongStateError("moves the traffic by itself")
    if one.status == ROLLING_BACK or one.paused_at is not None:
        raise WrongStateError("rolling back, or paused")
    return replace(one, rollout=replace(rollout, promote_requested=True))


def abort(one: Deployment, now: datetime) -> Deployment:
    _rollout(one)
    return one if one.status == ROLLING_BACK and one.paused_at is None else _turned_back(one, now)


def undo(one: Deployment, policy: DeploymentPolicy | None, ended: Sequence[Ended], now: datetime) -> Deployment:
    if one.rollout is not None:
        return _turned_back(one, now)
    for last in reversed(ended):
        if last.outcome is RolloutOutcome.COMPLETED and last.rollout.to_revision_id == one.current_revision_id:
            return activate(one, last.rollout.from_revision_id, policy, now)
    raise NoPreviousRevisionError("no rollout has led here")


def retry(one: Deployment, policy: DeploymentPolicy | None, ended: Sequence[Ended], now: datetime) -> Deployment:
    last = one.rollout or (ended[-1].rollout if ended and ended[-1].outcome is RolloutOutcome.ROLLED_BACK else None)
    if last is None:
        raise NoRolloutError("none was rolled back")
    back = one.status.sub_step is DeploymentSubStep.ROLLING_BACK
    return activate(one, last.to_revision_id, policy, now, supersede=back)


def scale(one: Deployment, desired: int) -> Deployment:
    if one.status.lifecycle in (Lifecycle.DESTROYING, Lifecycle.DESTROYED):
        raise WrongStateError("it can be scaled until it is destroyed")
    rollout = replace(one.rollout, desired_at_start=desired) if one.rollout else None
    return replace(one, desired_replicas=desired, degraded_reason=None, retry_at=None, rollout=rollout)


def destroy(one: Deployment, now: datetime) -> Deployment:
    if one.status.lifecycle in (Lifecycle.DESTROYING, Lifecycle.DESTROYED):
        return one
    return replace(
        one,
        status=DESTROYING,
        deploying_revision_id=None,
        rollout=None,
        paused_at=None,
        phase_started_at=now,
        phase_attempts=0,
    )


def _begun(one: Deployment, to: UUID, policy: DeploymentPolicy, now: datetime, desired: int | None) -> Deployment:
    assert one.current_revision_id is not None
    rollout = Rollout(
        id=UUID(int=one.version + 1),
        from_revision_id=one.current_revision_id,
        to_revision_id=to,
        policy=policy,
        started_at=now,
        last_progress_at=now,
        deadline=now + timedelta(seconds=policy.limits.timeout_seconds),
        desired_at_start=one.rollout.desired_at_start if one.rollout else one.desired_replicas,
    )
    return replace(
        one,
        status=PROVISIONING,
        deploying_revision_id=to,
        rollout=rollout,
        desired_replicas=_or(desired, one),
        phase_started_at=now,
        phase_attempts=0,
        paused_at=None,
        degraded_reason=None,
        retry_at=None,
    )


def _turned_back(one: Deployment, now: datetime) -> Deployment:
    return replace(
        one,
        status=ROLLING_BACK,
        paused_at=None,
        phase_attempts=0,
        phase_started_at=one.phase_started_at if one.status == ROLLING_BACK else now,
        rollout=replace(_rollout(one), clock_stopped_at=None),
    )


def _rollout(one: Deployment) -> Rollout:
    if one.rollout is None:
        raise NoRolloutError("there is no rollout to steer")
    return one.rollout


def _or(desired: int | None, one: Deployment) -> int:
    return one.desired_replicas if desired is None else desired
