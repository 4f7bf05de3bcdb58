"""How a replica leaves, in this order: out of traffic, grace for requests in flight, SIGTERM, SIGKILL.

    its process is gone                                           -> gone
    it was never started, and its runtime gives no answer         -> gone
    terminating, a live proxy may still send it requests          -> wait, until the drain deadline at most
    terminating, out of traffic for less than drain_seconds       -> wait
    not asked to end yet                                          -> ask (SIGTERM)
    stop_grace_seconds over since the first asking                -> kill (SIGKILL)
    asked, but its runtime gave no answer                         -> ask again
    otherwise                                                     -> wait

A failed replica is in nobody's way any more and skips the waits for its traffic. Of a replica whose runtime gives no
answer nothing is known, so it counts as running, unless it was never started.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.model import RouteStatus


class StopStep(StrEnum):
    """What to do with a leaving replica now."""

    WAIT = "wait"
    ASK = "ask"
    KILL = "kill"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class LeavingRoute:
    """A route on its way out. `drain_started_at`: when that was decided; None for one that failed.

    `running` is None while its runtime gives no answer; `is_unheard`: its runtime gave none when it was asked to end.
    `out_of_traffic_at`: when every live proxy had acknowledged a table without it; None before that.
    `stop_requested_at`: when it was first asked to end, heard or not.
    """

    status: RouteStatus
    was_started: bool
    running: bool | None
    is_unheard: bool
    drain_started_at: datetime | None
    out_of_traffic_at: datetime | None
    stop_requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class DrainTimes:
    """How long a leaving replica is waited for: for proxies, for requests in flight, and for it to end by itself."""

    deadline: timedelta
    drain: timedelta
    stop_grace: timedelta


def next_stop_step(route: LeavingRoute, times: DrainTimes, now: datetime) -> StopStep:
    """The next step of the ladder above."""
    has_no_answer = route.running is None or route.is_unheard
    if route.running is False or (has_no_answer and not route.was_started):
        return StopStep.GONE
    if route.status is RouteStatus.TERMINATING and now < _end_of_drain(route, times):
        return StopStep.WAIT
    if route.stop_requested_at is None:
        return StopStep.ASK
    if now >= route.stop_requested_at + times.stop_grace:
        return StopStep.KILL
    return StopStep.ASK if route.is_unheard else StopStep.WAIT


def killed_in_words(grace_seconds: float, count: int = 1) -> str:
    """What is said of replicas that were killed, one without a count."""
    killed = f"killed after {grace_seconds:g} s"
    if count == 1:
        return f"{killed}: it did not end on SIGTERM"
    return f"{count} replicas {killed}: they did not end on SIGTERM"


def _end_of_drain(route: LeavingRoute, times: DrainTimes) -> datetime:
    if route.drain_started_at is None:
        raise ValueError("a terminating route has no drain_started_at")
    return (route.out_of_traffic_at or route.drain_started_at + times.deadline) + times.drain
