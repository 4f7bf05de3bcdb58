"""How a replica leaves, in this order: out of traffic, grace for requests in flight, SIGTERM, SIGKILL.

    terminating, drain_seconds not over    -> wait
    its process is gone                    -> gone
    not asked to end yet                   -> ask (SIGTERM)
    stop_grace_seconds over                -> kill (SIGKILL)
    otherwise                              -> wait

A failed replica is in nobody's way any more and skips the first line.
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
class Leaving:
    """A route on its way out. `drain_started_at`: when it left traffic; None for one that failed."""

    status: RouteStatus
    running: bool
    drain_started_at: datetime | None
    stop_requested_at: datetime | None


def next_stop_step(route: Leaving, drain_seconds: float, stop_grace_seconds: float, now: datetime) -> StopStep:
    """The next step of the ladder above."""
    if not route.running:
        return StopStep.GONE
    drains = route.status is RouteStatus.TERMINATING and route.drain_started_at is not None
    if drains and now < route.drain_started_at + timedelta(seconds=drain_seconds):  # type: ignore[operator]
        return StopStep.WAIT
    if route.stop_requested_at is None:
        return StopStep.ASK
    if now >= route.stop_requested_at + timedelta(seconds=stop_grace_seconds):
        return StopStep.KILL
    return StopStep.WAIT
