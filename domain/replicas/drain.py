"""Ends a replica, in this order: out of traffic, grace for requests in flight, SIGTERM, SIGKILL.

    its process is gone                                           -> gone
    it was never started, and its runtime gives no answer         -> gone
    terminating, a live proxy may still send it requests          -> wait, until the drain deadline at most
    terminating, out of traffic, its proxies tell and it is busy  -> wait, for drain_max_seconds at most
    terminating, out of traffic, its proxies cannot tell          -> wait for drain_seconds
    not asked to end yet                                          -> ask (SIGTERM)
    stop_grace_seconds over since the first asking                -> kill (SIGKILL)
    asked, but its runtime gave no answer                         -> ask again
    otherwise                                                     -> wait

Its proxies can tell when each live one has a port for it, and the replica an address, by which they know it: one that
was drained while it was being started has none. Then a replica is idle when all of them said at two looks in a row that
no answer of it is under way. The first look takes a second: it is waited for as for an idle one where each proxy has
told before, and else, since none may come, for 5 s. What has been told once counts on when there are no more looks: a
proxy that falls silent, or whose server does, is not a quiet one.

A failed replica is in nobody's way any more and skips the waits for its traffic. Of a replica whose runtime gives no
answer nothing is known, so it counts as running, unless it was never started.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from domain.model.states import RouteStatus
from domain.revisions.revision import RevisionSpec
from domain.text.numbers import number_of

IDLE_LOOKS = 2
_FIRST_LOOK = timedelta(seconds=5)


class StopStep(StrEnum):
    """The thing to do with a leaving replica now."""

    WAIT = "wait"
    ASK = "ask"
    KILL = "kill"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class DrainLook:
    """The last look of all live proxies: `under_way` answers, which was 0 in the last `idle_looks` looks."""

    under_way: int
    idle_looks: int

    @property
    def is_idle(self) -> bool:
        """Whether it was idle for long enough to be believed."""
        return self.idle_looks >= IDLE_LOOKS


@dataclass(frozen=True, slots=True)
class LeavingRoute:
    """A route on its way out. `drain_started_at`: when that was decided; None for one that failed.

    `running` is None while its runtime gives no answer; `is_unheard`: its runtime gave none when it was asked to end.
    `out_of_traffic_at`: when every live proxy had acknowledged a table without it; None before that.
    `stop_requested_at`: when it was first asked to end, heard or not. `has_address`: proxies may know it.
    `do_proxies_tell`: each live one has a port for it; `have_proxies_told`: and has told there before.
    """

    status: RouteStatus
    was_started: bool
    running: bool | None
    is_unheard: bool
    drain_started_at: datetime | None
    out_of_traffic_at: datetime | None
    stop_requested_at: datetime | None
    has_address: bool
    do_proxies_tell: bool = False
    have_proxies_told: bool = False
    look: DrainLook | None = None


@dataclass(frozen=True, slots=True)
class DrainTimes:
    """The times that a leaving replica gets: for proxies, for requests in flight, and for it to end by itself.

    `drain_max`: for answers under way where proxies tell of them; None: `drain`, whatever they tell.
    """

    deadline: timedelta
    drain: timedelta
    stop_grace: timedelta
    drain_max: timedelta | None = None

    @classmethod
    def of(cls, spec: RevisionSpec, deadline: timedelta) -> "DrainTimes":
        """The times that a revision asks for."""
        return cls(
            deadline=deadline,
            drain=timedelta(seconds=spec.drain_seconds),
            stop_grace=timedelta(seconds=spec.stop_grace_seconds),
            drain_max=timedelta(seconds=spec.drain_max_seconds) if spec.drain == "until_idle" else None,
        )


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


def cut_by_maximum(route: LeavingRoute, times: DrainTimes) -> int:
    """Count the answers that are cut if this replica is asked to end now, as far as proxies report."""
    if times.drain_max is None or not route.do_proxies_tell or route.look is None:
        return 0
    return route.look.under_way


def cut_in_words(max_seconds: float, answers: int) -> str:
    """A sentence about replicas that were asked to end before they were idle."""
    which = f"{number_of(answers, 'answer')} {'was' if answers == 1 else 'were'}"
    return f"{which} still under way after drain_max_seconds, {max_seconds:g} s: cut"


def killed_in_words(grace_seconds: float, count: int = 1) -> str:
    """A sentence about replicas that were killed, without the count for one."""
    killed = f"killed after {grace_seconds:g} s"
    if count == 1:
        return f"{killed}: it did not end on SIGTERM"
    return f"{count} replicas {killed}: they did not end on SIGTERM"


def _end_of_drain(route: LeavingRoute, times: DrainTimes) -> datetime:
    if route.drain_started_at is None:
        raise ValueError("a terminating route has no drain_started_at")
    if route.out_of_traffic_at is None:
        return end_of_fixed_drain(route.drain_started_at, None, times)
    return route.out_of_traffic_at + _drain(route, times)


def end_of_fixed_drain(decided_at: datetime, let_go_at: datetime | None, times: DrainTimes) -> datetime:
    """The end of `drain`, which begins once every live proxy has let go of a route, or at the deadline without that."""
    return (decided_at + times.deadline if let_go_at is None else let_go_at) + times.drain


def _drain(route: LeavingRoute, times: DrainTimes) -> timedelta:
    match route.look:
        case _ if times.drain_max is None or not route.do_proxies_tell or not route.has_address:
            return times.drain
        case None if not route.have_proxies_told:
            return max(times.drain, _FIRST_LOOK)
        case DrainLook(is_idle=True):
            return timedelta(0)
        case _:
            return times.drain_max
