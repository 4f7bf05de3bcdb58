"""What each command leaves, or that it is refused: the ladders of docs/commands.md a second time, slow and plain.

It shares no code with `domain/steering` and `domain/cycle/rollout.py`.
"""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from domain.model.canary import CanaryState
from domain.model.deployment import Deployment, Rollout
from domain.model.states import Lifecycle
from tests.support.people.people import asking
from tests.support.pictures.pictures import DESTROYING, PROVISIONING, ROLLING_BACK, V1, V2, V3
from tests.support.worlds.promised import WHOLE
from tools.prove.laws.limits import failures_allowed, of_undo
from tools.prove.laws.spelled import left_to_the_new, returning, with_weight
from tools.prove.state import State

REVISIONS = {"v1": V1, "v2": V2, "v3": V3}


def after_command(name: str, state: State) -> Deployment | None:
    """None where it is refused, or nothing is to be done."""
    left = _left(name.split(), state)
    if left is None or replace(left, version=state.deployment.version) == state.deployment:
        return None
    return replace(left, version=state.deployment.version + 1)


def _left(words: list[str], state: State) -> Deployment | None:
    before = state.deployment
    if before.status.lifecycle in (Lifecycle.DESTROYING, Lifecycle.DESTROYED):
        return None
    match words:
        case ["destroy"]:
            gone = replace(before, status=DESTROYING, deploying_revision_id=None, rollout=None, paused_at=None)
            return replace(gone, phase_started_at=state.now, phase_attempts=0)
        case ["scale", "to", size]:
            return _scaled(before, int(size))
        case ["activate", revision, *supersede]:
            return _activated(state, REVISIONS[revision], None, supersede=bool(supersede))
        case ["retry"]:
            return _retried(state)
        case ["undo", "to", revision]:
            return _activated(state, REVISIONS[revision], None, supersede=True, undo=True)
        case ["undo"] if before.rollout is None:
            back = state.previous
            return _activated(state, back, None, supersede=True, undo=True) if back else None
        case _ if before.rollout is not None:
            return _steered(" ".join(words), state, before.rollout)
    return None


def _scaled(before: Deployment, size: int) -> Deployment:
    """In a rollout it is the size of both revisions; what was given up is tried again."""
    rollout = before.rollout
    both = _resized(before, rollout, size) if rollout else None
    return replace(before, desired_replicas=size, rollout=both, degraded_reason=None, retry_at=None)


def _resized(before: Deployment, rollout: Rollout, size: int) -> Rollout:
    return replace(_as_many_may_fail(before, rollout, size), desired_at_start=size, desired_with_revision=None)


def _as_many_may_fail(before: Deployment, rollout: Rollout, size: int) -> Rollout:
    """A smaller size does not make failures count that were allowed. After none the look at a canary begins anew."""
    canary = rollout.canary
    if canary is not None and canary.weight is not None and not before.desired_replicas and size:
        rollout = replace(rollout, canary=replace(canary, weight_known_at=None))
    allowed = failures_allowed(rollout, before.desired_replicas)
    if failures_allowed(rollout, size) >= allowed:
        return rollout
    policy = rollout.policy
    return replace(rollout, policy=replace(policy, limits=policy.limits.model_copy(update={"failure_budget": allowed})))


def _steered(name: str, state: State, rollout: Rollout) -> Deployment | None:
    before, paused = state.deployment, state.deployment.paused_at is not None
    returns = before.status == ROLLING_BACK
    canary = rollout.canary
    has_weight = rollout.policy.strategy == "canary" and canary is not None and canary.weight is not None
    match name:
        case "pause" if not paused:
            still = replace(rollout, clock_stopped_at=rollout.clock_stopped_at or state.now)
            return replace(before, paused_at=state.now, rollout=still)
        case "resume" if paused:
            return _awake(state)
        case "promote" if not returns and not paused and not rollout.promote_requested:
            waits = rollout.policy.strategy == "blue_green" or has_weight
            return replace(before, rollout=replace(rollout, promote_requested=True)) if waits else None
        case "promote in full" if not returns and not paused and canary and has_weight:
            past = replace(canary, weight=None, weight_known_at=None)
            return replace(before, rollout=replace(rollout, canary=past, promote_requested=False))
        case "undo" if rollout.is_undo:
            return _awake(state) if paused and not returns else None
        case "abort" | "undo" if paused or not returns:
            return _back(state)
        case "abort now" if paused or not returns or (canary and canary.weight):
            back = _back(state)
            gone = canary and back and back.rollout and replace(back, rollout=with_weight(back.rollout, 0))
            return gone or back
    return None


def _awake(state: State) -> Deployment:
    """The seconds of a weight stand still while both are so: paused, and known to every proxy."""
    before, rollout = state.deployment, state.deployment.rollout
    if rollout and rollout.canary and rollout.canary.weight_known_at and before.paused_at:
        known_at = rollout.canary.weight_known_at
        looked_at = max(timedelta(), before.paused_at - known_at)
        rollout = replace(rollout, canary=replace(rollout.canary, weight_known_at=state.now - looked_at))
    return replace(before, paused_at=None, rollout=rollout)


def _back(state: State, size: int | None = None) -> Deployment | None:
    """To the size from before, or to one that comes with the wish."""
    before, rollout = state.deployment, state.deployment.rollout
    if rollout is None:
        return None
    if size is not None:
        rollout = _resized(before, rollout, size)
    returns = before.status == ROLLING_BACK
    return replace(
        before,
        status=ROLLING_BACK,
        desired_replicas=rollout.desired_at_start,
        paused_at=None,
        phase_attempts=0,
        phase_started_at=before.phase_started_at if returns else state.now,
        rollout=returning(before, replace(rollout, clock_stopped_at=None)),
    )


def _retried(state: State) -> Deployment | None:
    """What runs is the answer; what returns, or has returned, begins again with the size that came with it.

    Where nothing was rolled back, failed starts are forgotten, those that still count.
    """
    rollout = state.deployment.rollout
    if rollout is not None:
        returns = state.deployment.status == ROLLING_BACK
        size, is_undo = rollout.desired_with_revision, rollout.is_undo
        again = _activated(state, rollout.to_revision_id, size, supersede=returns, undo=is_undo)
        return replace(again, start_failures=None) if again and returns else again
    if state.rolled_back is None:
        before = state.deployment
        came_up_at = before.start_failures.came_up_at if before.start_failures else None
        well = before.start_failures is None or (came_up_at and state.now >= came_up_at + timedelta(seconds=60))
        if well and not before.degraded_reason and not before.retry_at:
            return None
        return replace(before, start_failures=None, degraded_reason=None, retry_at=None)
    last = state.rolled_back
    size = last.size if state.deployment.desired_replicas == last.before else None
    again = _activated(state, last.revision, size, supersede=False, undo=last.is_undo)
    starts = again and (again.rollout or again.current_revision_id != state.deployment.current_revision_id)
    return replace(again, start_failures=None) if again and starts else again


def _activated(
    state: State, revision: UUID, size: int | None, *, supersede: bool, undo: bool = False
) -> Deployment | None:
    before, rollout = state.deployment, state.deployment.rollout
    if rollout is None:
        if revision != before.current_revision_id:
            return _begun(state, revision, size, undo=undo) if state.policy else _pointing(before, revision, size)
        others = any(r.revision_id != revision and r.parked_until is None for r in before.active_routes)
        if not others and size in (None, before.desired_replicas):
            return None
        return _pointing(before, revision, size)
    leads_there = revision == rollout.to_revision_id and before.status != ROLLING_BACK
    if leads_there and undo and not rollout.is_undo:
        return _begun(state, revision, rollout.desired_with_revision if size is None else size, undo=True)
    if leads_there:
        awake = _awake(state)
        assert awake.rollout is not None
        if size is None:
            return awake
        again = replace(_as_many_may_fail(before, awake.rollout, size), desired_with_revision=size)
        return replace(awake, desired_replicas=size, rollout=again)
    if not supersede:
        return None
    return _back(state, size) if revision == before.current_revision_id else _begun(state, revision, size, undo=undo)


def _pointing(before: Deployment, revision: UUID, size: int | None) -> Deployment:
    sized = before if size is None else replace(before, desired_replicas=size)
    return replace(sized, current_revision_id=revision, degraded_reason=None, retry_at=None)


def _begun(state: State, revision: UUID, size: int | None, *, undo: bool) -> Deployment | None:
    """With clocks of its own. The size that it returns to is that from before a rollout whose place it takes."""
    before, now = state.deployment, state.now
    policy = state.policy or (before.rollout.policy if before.rollout else None)
    if policy is None or before.current_revision_id is None:
        return None
    known = before.rollout.desired_at_start if before.rollout else before.desired_replicas
    rollout = Rollout(
        id=asking(before, now).rollout_id,
        from_revision_id=before.current_revision_id,
        to_revision_id=revision,
        policy=of_undo(policy) if undo else policy,
        started_at=now,
        last_progress_at=now,
        deadline=now + timedelta(seconds=policy.limits.timeout_seconds),
        desired_at_start=known,
        desired_with_revision=size,
        promote_requested=undo,
        is_undo=undo,
    )
    begun = replace(before, status=PROVISIONING, deploying_revision_id=revision, rollout=rollout, paused_at=None)
    wanted = replace(begun, desired_replicas=known if size is None else size)
    if policy.strategy == "canary" and not undo:
        weight = min(WHOLE - 1, left_to_the_new(wanted, rollout))
        wanted = replace(wanted, rollout=replace(rollout, canary=CanaryState(weight=weight)))
    return replace(wanted, phase_started_at=now, phase_attempts=0, degraded_reason=None, retry_at=None)
