"""Judges a parked replica that may sleep, and one that is needed again.

parked, of another revision than the one that should run,
drain_seconds after every live proxy has let go of it       -> asleep: it is provisioning, as one that starts
it sleeps, and its revision needs devices                   -> it has lent them, and waits until a decision wakes it
its revision needs none, and should run again               -> it is woken
`wake` is answered                                          -> healthy with the first probe after that
`wake` is not answered in time                              -> failed

A proxy that does not let go of it is waited for until the drain deadline at most, as before a replica is stopped.
For every decision, a sleeping replica is one that starts: no strategy counts on it before it is awake and healthy.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.model.states import RouteStatus
from domain.replicas.drain import DrainTimes, end_of_fixed_drain
from domain.replicas.health import HealthVerdict, ProbeResult
from domain.revisions.warm_start_spec import Park


class SleepStep(StrEnum):
    """A step of the sleep of a replica, as a report names it."""

    NONE = ""
    BEGINS = "begins"
    ANSWERED = "answered"
    WAKES = "wakes"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class ParkedRoute:
    """The facts of a route that decide about its sleep. `is_needed`: it should be awake.

    `parked_at`: when it was parked, None for one that is not. `let_go_at`: when every live proxy had acknowledged a
    table in which it is parked; earlier than `parked_at`, it is of another time.
    """

    status: RouteStatus
    is_needed: bool
    parked_at: datetime | None
    let_go_at: datetime | None
    asleep_at: datetime | None
    slept_at: datetime | None
    wake_started_at: datetime | None

    @property
    def is_asleep(self) -> bool:
        """Whether it may sleep, and nobody needs it."""
        return self.asleep_at is not None and not self.is_needed

    @property
    def is_waking(self) -> bool:
        """Whether it may sleep, and is needed."""
        return self.asleep_at is not None and self.is_needed

    @property
    def may_fall_asleep(self) -> bool:
        """Whether it is to sleep once its last requests are answered."""
        is_awake = self.asleep_at is None and self.status is RouteStatus.HEALTHY
        return is_awake and self.parked_at is not None and not self.is_needed


def next_sleep_step(park: Park | None, route: ParkedRoute, times: DrainTimes, now: datetime) -> SleepStep:
    """The step to write before a request is sent, since a request without an answer may have arrived."""
    if park is None:
        return SleepStep.NONE
    if route.may_fall_asleep and now >= _last_request_ends_at(route, times):
        return SleepStep.BEGINS
    if route.is_waking and route.wake_started_at is None:
        return SleepStep.WAKES
    return SleepStep.NONE


def judge_sleep(park: Park, route: ParkedRoute, result: ProbeResult, now: datetime, reason: str) -> HealthVerdict:
    """The next status of a replica that may sleep. `reason`: that of its route."""
    if not result.running:
        return HealthVerdict(RouteStatus.FAILED, 0, result.detail)
    began = route.wake_started_at if route.is_waking else None
    if began is not None and now >= began + timedelta(seconds=park.awake_within_seconds):
        return HealthVerdict(RouteStatus.FAILED, 0, f"not awake within {park.awake_within_seconds:g} s: {reason}")
    return HealthVerdict(route.status, 0)


def _last_request_ends_at(route: ParkedRoute, times: DrainTimes) -> datetime:
    if route.parked_at is None:
        raise ValueError("a route that is not parked has requests to come")
    let_go_at = route.let_go_at and max(route.let_go_at, route.parked_at)
    return end_of_fixed_drain(route.parked_at, let_go_at, times)
