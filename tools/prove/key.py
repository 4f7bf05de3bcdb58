"""A state as a few bytes: equal for states in which the same is decided and from which the same can happen.

revision      by its part: current 0, deploying 1, others by their first route; all are asked for alike
route         status, traffic, revision, age as far as something compares it, whether it is of a fresh baseline that
              is still beside its canary, whether its host is drained, whether it sleeps, time left parked; eldest first
stopping      how many of each revision; their order decides nothing
limits        the deadline, the time without progress, the time of scaling: far or passed
other times   seconds that are left, 0 once they are over; `tools.prove.clocks` says which count
counters      failed routes up to 3, which is more than any limit of the starts
way back      it leads no more to where the rollout went, so failed routes and limits are left out, and a stage
              whose weight is gone; of what proxies have told its judge harm alone counts
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from domain.cycle.rollout import size_again
from domain.handlers.scaling import TIMEOUT_MINUTES
from domain.model.deployment import Deployment, Rollout, Route, StartFailures
from domain.model.states import DeploymentSubStep, Lifecycle, RouteStatus, TrafficStatus
from domain.strategies.budget import SICK_GRACE_SECONDS
from domain.strategies.converge import next_start_at, proven_at
from tests.support.pictures.pictures import ROLLING_BACK
from tests.support.pictures.values_within import canary_of
from tools.prove.clocks import HARM, SICK, ages, failures, is_asked, told, told_when_resumed, weight_age, weight_ages
from tools.prove.state import LONG, State

FAR = 300
"""Seconds: everything else that is waited for is over before a limit that is further away than this."""
MOST_FAILED = 3

NEVER = datetime.max.replace(tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_STATUSES = {status: number for number, status in enumerate(RouteStatus)}
_LIFECYCLES = {lifecycle: number for number, lifecycle in enumerate(Lifecycle)}


def key_of(state: State) -> bytes:
    """Raises ValueError for a number that does not fit into a byte, or a limit that is neither far nor passed."""
    deployment, now = state.deployment, state.now
    names: dict[UUID | None, int] = {deployment.current_revision_id: 0}
    if deployment.deploying_revision_id is not None:
        names[deployment.deploying_revision_id] = 1
    begun = baseline_since(deployment)
    out: list[int] = []
    stopping: list[int] = []
    for route in deployment.routes:
        name = _name(names, route.revision_id)
        if route.status is RouteStatus.TERMINATING:
            stopping.append(name)
        else:
            out += (_STATUSES[route.status], route.traffic is TrafficStatus.ACTIVE, name)
            out += (_age(state, route), 0 if route.parked_until is None else 1 + _left(route.parked_until, now))
            out += (route.created_at >= begun, route.is_misplaced, route.has_lent)
    return bytes((*_row(state), len(out), *out, len(stopping), *sorted(stopping), *_past(state, names)))


def baseline_since(deployment: Deployment) -> datetime:
    """What is no older than this is of a fresh baseline; nothing is when its canary has no weight any more."""
    rollout = deployment.rollout
    if rollout is None or canary_of(rollout).weight is None or deployment.status == ROLLING_BACK:
        return NEVER
    return rollout.started_at if getattr(rollout.policy.spec, "has_baseline", False) else NEVER


def _name(names: dict[UUID | None, int], revision: UUID | None) -> int:
    return names.setdefault(revision, max(2, len(names)))


def _row(state: State) -> tuple[int, ...]:
    deployment, now, rollout = state.deployment, state.now, state.deployment.rollout
    rolling_back = deployment.status.sub_step is DeploymentSubStep.ROLLING_BACK
    scaling = deployment.status.lifecycle is Lifecycle.SCALING
    return (
        _LIFECYCLES[deployment.status.lifecycle] * 2 + rolling_back,
        deployment.desired_replicas,
        deployment.paused_at is not None,
        deployment.degraded_reason is not None,
        0 if deployment.retry_at is None else 1 + _left(deployment.retry_at, now),
        scaling and _passed(deployment.phase_started_at + timedelta(minutes=TIMEOUT_MINUTES), now),
        _due(state.due_at, now),
        state.held is not None,
        state.frozen,
        *(_either_way(rollout, now) if rollout else ()),
        *(_forward(state, rollout) if rollout and not rolling_back else ()),
    )


def _either_way(rollout: Rollout, now: datetime) -> tuple[int, ...]:
    stopped_at, with_revision, canary = rollout.clock_stopped_at, rollout.desired_with_revision, canary_of(rollout)
    return (
        rollout.is_undo,
        rollout.steps > 0,
        rollout.desired_at_start,
        0 if with_revision is None else 1 + with_revision,
        0 if stopped_at is None else 1 + (now - stopped_at >= LONG * _SECOND),
        *divmod(canary.weight or 0, 256),
        bool(canary.weight) and canary.weight_known_at is not None,
        canary.stage if canary.weight else 0,
        told(rollout, now) == HARM,
        is_asked(rollout, now),
    )


def _forward(state: State, rollout: Rollout) -> tuple[int, ...]:
    now, its_now = state.now, rollout.clock_stopped_at or state.now
    progress_seconds = rollout.policy.limits.progress_timeout_seconds
    progress_ends = rollout.last_progress_at + timedelta(seconds=progress_seconds or 2 * LONG)
    return (
        min(MOST_FAILED, rollout.failed_routes),
        bool(rollout.unanswered),
        rollout.in_use and rollout.unanswered is not None,
        rollout.promote_requested,
        0 if canary_of(rollout).weight is None else 1 + canary_of(rollout).stage,
        0 if canary_of(rollout).weight is None else _known(state, rollout),
        told(rollout, now),
        told_when_resumed(state.deployment, now),
        _passed(rollout.deadline, its_now),
        progress_seconds is not None and _passed(progress_ends, its_now),
    )


def _known(state: State, rollout: Rollout) -> int:
    """For how long every proxy has known the weight, as far as its step takes."""
    if canary_of(rollout).weight_known_at is None:
        return 0
    longest = int(max(weight_ages(rollout), default=0))
    return 1 + min(longest, weight_age(state, rollout) // _SECOND)


def _failed(found: StartFailures, now: datetime) -> tuple[int, ...]:
    """In a row, and when the next may be tried; or, once one has come up, when it is well for good."""
    if found.came_up_at is None:
        return found.in_a_row, found.short_lives, 0, _left(next_start_at(found), now)
    return found.in_a_row, found.short_lives, 1, _left(proven_at(found.came_up_at), now)


def _past(state: State, names: dict[UUID | None, int]) -> tuple[int, ...]:
    found = failures(state)
    failed = (0,) if found is None else (1 + _name(names, found.revision_id), *_failed(found, state.now))
    if not state.left.commands:
        return failed
    previous = 0 if state.previous is None else 1 + _name(names, state.previous)
    if state.rolled_back is None:
        return (*failed, 255, previous)
    revision, size, before, is_undo = state.rolled_back
    size = size_again(state.deployment, size, before)
    is_scaled = state.deployment.desired_replicas != before
    return (*failed, 255, previous, _name(names, revision), is_undo, is_scaled, 0 if size is None else 1 + size)


def _age(state: State, route: Route) -> int:
    """As far as the grace of a sick one, or what a healthy one is compared with."""
    if route.status in SICK:
        return min(int(SICK_GRACE_SECONDS), (state.now - route.status_changed_at) // _SECOND)
    if route.status is RouteStatus.HEALTHY and (spans := ages(state, route)):
        return min(int(max(spans)), (state.now - route.status_changed_at) // _SECOND)
    return 0


def _left(until: datetime, now: datetime) -> int:
    return max(0, (until - now) // _SECOND)


def _passed(limit: datetime, now: datetime) -> bool:
    left = (limit - now) // _SECOND
    if 0 < left < FAR:
        raise ValueError(f"a limit is {left} s away: neither far nor passed")
    return left <= 0


def _due(due_at: datetime | None, now: datetime) -> int:
    """0 never, 1 now, 2 at a limit, otherwise 3 and the seconds until then."""
    if due_at is None:
        return 0
    left = _left(due_at, now)
    return 1 if left <= 0 else min(left + 3, FAR) if left < FAR else 2
