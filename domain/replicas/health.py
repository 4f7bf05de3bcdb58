"""Judges a route's health by the probes of its replica: the next health, or none.

provisioning --success x success_threshold--> healthy; without a check --it has run for 3 s--> healthy
provisioning --start deadline passed, or the process ended--> failed
healthy      --failure x failure_threshold--> unhealthy --success x success_threshold--> healthy
any live     --the process ended, or another program has its port--> failed
healthy, unhealthy --no fresh probe--> degraded --a probe--> healthy or unhealthy
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from signal import Signals

from domain.model.deployment import Route
from domain.model.states import RouteStatus
from domain.revisions.health_check import HealthCheck
from domain.text.numbers import doubling_pause

_LONG_START = timedelta(seconds=3)
"""The age at which a start gets a reason: long before the deadline, but most starts write none."""

_LEAST_PAUSE, _MOST_PAUSE = timedelta(seconds=0.02), timedelta(seconds=0.25)
_PAUSES_IN_A_START = 40
_PAUSE_AFTER_SUCCESS = timedelta(seconds=0.1)

RUNS_WELL = timedelta(seconds=3)
"""A replica without a check counts after this time: most that cannot run have ended by then, and replace none."""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """One look at a replica. `is_answered` is None when no probe was due; `detail`: its result in words."""

    running: bool
    is_answered: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class ProbedRoute:
    """A route before the probe. `streak` counts results in a row that speak against its status."""

    status: RouteStatus
    started_at: datetime
    streak: int


@dataclass(frozen=True, slots=True)
class HealthVerdict:
    """The route's next status and streak, with the reason when the status changes."""

    status: RouteStatus
    streak: int
    reason: str | None = None


def end_in_words(exit_code: int | None) -> str:
    """How a process ended, in words; a negative code is the signal that killed it."""
    if exit_code is None:
        return "its process ended"
    if exit_code >= 0:
        return f"its process ended with exit code {exit_code}"
    names = {signal.value: signal.name for signal in Signals}
    return f"its process was killed by {names.get(-exit_code, f'signal {-exit_code}')}"


def probe_is_due(check: HealthCheck, started_at: datetime, now: datetime) -> bool:
    """The initial delay counts from the replica's start, not from the route's creation."""
    return now >= started_at + timedelta(seconds=check.initial_delay_seconds)


def pause_while_starting(route: ProbedRoute, now: datetime) -> timedelta:
    """The pause before a starting replica is probed again: a fortieth of the time since its start.

    So a replica waits at most a fortieth of its start before it is seen, and one that starts for minutes is probed
    seldom. The pause between successes does not shrink: a threshold of several successes means a time.
    """
    if route.streak:
        return _PAUSE_AFTER_SUCCESS
    return min(max((now - route.started_at) / _PAUSES_IN_A_START, _LEAST_PAUSE), _MOST_PAUSE)


def judge_health(check: HealthCheck | None, route: ProbedRoute, result: ProbeResult, now: datetime) -> HealthVerdict:
    """Status and streak after one look. A look that changes nothing returns its argument."""
    unchanged = HealthVerdict(route.status, route.streak)
    if not route.status.is_active:
        return unchanged
    if not result.running:
        return HealthVerdict(RouteStatus.FAILED, 0, result.detail)
    if check is None:
        return _without_check(route, now)
    match route.status, result.is_answered:
        case RouteStatus.PROVISIONING, True:
            return _against(route, check.success_threshold, RouteStatus.HEALTHY, result)
        case RouteStatus.PROVISIONING, _:
            return _still_starting(check, route, result, now)
        case _, None:
            return unchanged
        case RouteStatus.HEALTHY, False:
            return _against(route, check.failure_threshold, RouteStatus.UNHEALTHY, result)
        case RouteStatus.UNHEALTHY, True:
            return _against(route, check.success_threshold, RouteStatus.HEALTHY, result)
        case RouteStatus.DEGRADED, answered:
            return HealthVerdict(RouteStatus.HEALTHY if answered else RouteStatus.UNHEALTHY, 0, result.detail)
    return HealthVerdict(route.status, 0)


def why_not_yet(route: ProbedRoute, is_answered: bool, detail: str, now: datetime) -> str | None:  # noqa: FBT001
    """Why a replica starts for longer than most; None for any other."""
    if is_answered or route.status is not RouteStatus.PROVISIONING or now < route.started_at + _LONG_START:
        return None
    return f"not healthy yet: {detail}"


def unread_status(status: RouteStatus) -> RouteStatus:
    """The next status of a replica whose revision this release cannot read, so that it cannot be probed here.

    provisioning         -> failed
    healthy, unhealthy   -> degraded
    otherwise            -> as it was
    """
    match status:
        case RouteStatus.PROVISIONING:
            return RouteStatus.FAILED
        case RouteStatus.HEALTHY | RouteStatus.UNHEALTHY:
            return RouteStatus.DEGRADED
    return status


def _without_check(route: ProbedRoute, now: datetime) -> HealthVerdict:
    starts = route.status is RouteStatus.PROVISIONING and now < route.started_at + RUNS_WELL
    if starts or route.status is RouteStatus.HEALTHY:
        return HealthVerdict(route.status, route.streak)
    return HealthVerdict(RouteStatus.HEALTHY, 0, "it runs")


def _against(route: ProbedRoute, threshold: int, status: RouteStatus, result: ProbeResult) -> HealthVerdict:
    streak = route.streak + 1
    if streak < threshold:
        return HealthVerdict(route.status, streak)
    return HealthVerdict(status, 0, result.detail)


def _still_starting(check: HealthCheck, route: ProbedRoute, result: ProbeResult, now: datetime) -> HealthVerdict:
    if now < route.started_at + timedelta(seconds=check.start_deadline_seconds):
        # no probe says nothing: it must not undo the successes counted so far
        return HealthVerdict(route.status, route.streak if result.is_answered is None else 0)
    reason = f"not healthy within {check.start_deadline_seconds:g} s of its start: {result.detail}"
    return HealthVerdict(RouteStatus.FAILED, 0, reason)


_AFTER_AN_ANSWER = timedelta(seconds=60)
RENEWED_BELOW = timedelta(seconds=45)
"""A replica is kept again when less of its time is left: each renewal counts up a version."""
MOST_KEPT = timedelta(minutes=5)


def kept_until(found_sick_at: datetime, answered_at: datetime) -> datetime:
    """Until when a sick replica is kept that answers no probe, but callers: it may be busy.

    it has answered no caller since it was found sick    -> no longer than every sick one, 30 s
    it has                                               -> 60 s after its last answer, 5 min in all
    """
    return min(answered_at + _AFTER_AN_ANSWER, found_sick_at + MOST_KEPT)


def is_answering(route: Route) -> bool:
    """Whether it is sick and has answered callers since."""
    if route.status is not RouteStatus.UNHEALTHY or route.kept_until is None:
        return False
    return route.kept_until > route.status_changed_at


def pause_after(tries: int) -> timedelta:
    """The pause before the next try, after this number of tries in a row without an answer: 1 at least."""
    return doubling_pause(tries, first=1, longest=10)
