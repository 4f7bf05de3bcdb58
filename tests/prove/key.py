"""A state as a few bytes: equal for states in which the same is decided and from which the same can happen.

revision      by its part: current 0, deploying 1, others by their first route; all are asked for alike
route         status, traffic, revision, age as far as something compares it, whether it is no older than a rollout with
              a fresh baseline, time left parked; eldest first
stopping      how many of each revision; their order decides nothing
limits        the deadline, the time without progress, the time of scaling: far or passed
other times   seconds that are left, 0 once they are over
counters      failed routes up to 3, which is more than any limit of the starts
"""

from datetime import UTC, datetime, timedelta
from functools import cache
from uuid import UUID

from domain.backoff import next_start_at, proven_at
from domain.handlers.scaling import TIMEOUT_MINUTES
from domain.model import Lifecycle, Rollout, Route, RouteStatus, StartFailures, TrafficStatus
from domain.policy import DeploymentPolicy
from domain.rollout import is_judged
from domain.strategies.buckets import SICK_GRACE_SECONDS
from tests.prove.state import State

FAR = 300
"""Seconds: everything else that is waited for is over before a limit that is further away than this."""
LONG = 2 * 1800
"""Seconds that a person lets a rollout wait: longer than any of its limits."""
MOST_FAILED = 3

NEVER = datetime.max.replace(tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_STATUSES = {status: number for number, status in enumerate(RouteStatus)}
_LIFECYCLES = {lifecycle: number for number, lifecycle in enumerate(Lifecycle)}
_SICK = (RouteStatus.UNHEALTHY, RouteStatus.DEGRADED)


@cache
def spans(policy: DeploymentPolicy | None) -> list[float]:
    """The seconds that its spec speaks of: ages of healthy routes are compared with them."""
    if policy is None:
        return []
    steps = [float(step.seconds) for step in getattr(policy.spec, "steps", ()) if step.seconds]
    if judge := getattr(policy.spec, "judge", None):
        steps += [judge.at_least.seconds, judge.at_most.seconds]
    return [seconds for name, seconds in policy.spec if name.endswith("_seconds") and seconds] + steps


def key_of(state: State) -> bytes:
    """Raises ValueError for a number that does not fit into a byte, or a limit that is neither far nor passed."""
    deployment, now = state.deployment, state.now
    names: dict[UUID | None, int] = {deployment.current_revision_id: 0}
    if deployment.deploying_revision_id is not None:
        names[deployment.deploying_revision_id] = 1
    longest, begun = int(max(spans(state.policy), default=0)), baseline_since(deployment.rollout)
    out: list[int] = []
    stopping: list[int] = []
    for route in deployment.routes:
        name = _name(names, route.revision_id)
        if route.status is RouteStatus.TERMINATING:
            stopping.append(name)
        else:
            out += (_STATUSES[route.status], route.traffic is TrafficStatus.ACTIVE, name)
            out += (_age(route, longest, now), 0 if route.parked_until is None else 1 + _left(route.parked_until, now))
            out.append(route.created_at >= begun)
    return bytes((*_row(state), len(out), *out, len(stopping), *sorted(stopping), *_past(state, names)))


def baseline_since(rollout: Rollout | None) -> datetime:
    """What is no older than this is of a fresh baseline."""
    has_baseline = rollout is not None and getattr(rollout.policy.spec, "has_baseline", False)
    return rollout.started_at if rollout and has_baseline else NEVER


def _name(names: dict[UUID | None, int], revision: UUID | None) -> int:
    return names.setdefault(revision, max(2, len(names)))


def _row(state: State) -> tuple[int, ...]:
    deployment, now = state.deployment, state.now
    rolling_back = deployment.status.sub_step == "rolling_back"
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
        *(_rollout(deployment.rollout, now, rolling_back=rolling_back) if deployment.rollout else ()),
    )


def _rollout(rollout: Rollout, now: datetime, *, rolling_back: bool) -> tuple[int, ...]:
    stopped_at = rollout.clock_stopped_at
    its_now = stopped_at or now
    progress_seconds = rollout.policy.limits.progress_timeout_seconds
    progress_ends = rollout.last_progress_at + timedelta(seconds=progress_seconds or 2 * LONG)
    with_revision = rollout.desired_with_revision
    return (
        min(MOST_FAILED, rollout.failed_routes),
        rollout.promote_requested,
        rollout.is_undo,
        rollout.desired_at_start,
        0 if with_revision is None else 1 + with_revision,
        0 if stopped_at is None else 1 + (now - stopped_at >= LONG * _SECOND),
        rollout.stage,
        0 if rollout.weight is None else 1 + bool(rollout.weight),
        _known(rollout, now),
        told(rollout, now),
        not rolling_back and _passed(rollout.deadline, its_now),
        not rolling_back and progress_seconds is not None and _passed(progress_ends, its_now),
    )


def _known(rollout: Rollout, now: datetime) -> int:
    """For how long every proxy has known the weight, as far as a step takes."""
    if rollout.weight_known_at is None:
        return 0
    longest = int(max(spans(rollout.policy), default=0))
    return 1 + min(longest, (now - rollout.weight_known_at) // _SECOND)


def told(rollout: Rollout, now: datetime) -> int:
    """What proxies have told its judge: 0 nothing that it goes by, 1 good of this weight, 2 harm of any."""
    if not is_judged(rollout):
        return 0
    if any(seen.canary.failed for seen in rollout.evidence):
        return 2
    return int(any(seen.at > (rollout.weight_known_at or now) for seen in rollout.evidence))


def _failed(failures: StartFailures, now: datetime) -> tuple[int, ...]:
    """In a row, and when the next may be tried; or, once one has come up, when it is well for good."""
    if failures.came_up_at is None:
        return failures.in_a_row, failures.short_lives, 0, _left(next_start_at(failures), now)
    return failures.in_a_row, failures.short_lives, 1, _left(proven_at(failures.came_up_at), now)


def _past(state: State, names: dict[UUID | None, int]) -> tuple[int, ...]:
    failures = state.deployment.start_failures
    failed = (0,) if failures is None else (1 + _name(names, failures.revision_id), *_failed(failures, state.now))
    if not state.left.commands:
        return failed
    previous = 0 if state.previous is None else 1 + _name(names, state.previous)
    if state.rolled_back is None:
        return (*failed, 255, previous)
    revision, size = state.rolled_back
    return (*failed, 255, previous, _name(names, revision), 0 if size is None else 1 + size)


def _age(route: Route, longest: int, now: datetime) -> int:
    """As far as the grace of a sick one, or a span of the spec for a healthy one."""
    if route.status in _SICK:
        return min(int(SICK_GRACE_SECONDS), (now - route.status_changed_at) // _SECOND)
    if route.status is RouteStatus.HEALTHY and longest:
        return min(longest, (now - route.status_changed_at) // _SECOND)
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
