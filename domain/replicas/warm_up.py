"""Judges whether a healthy new replica is warm: the answers to the requests of its revision, and the clock for them.

its health check succeeds            -> it is warmed up; it stays provisioning
every request has its good answers   -> warm; healthy with the next successful probe, or at once without a check
it answers badly, or slowly          -> the good answers in a row are counted from 0 again
the clock has passed                 -> failed, with what was seen last
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.model.states import RouteStatus
from domain.replicas.health import HealthVerdict, ProbeResult
from domain.revisions.warm_start_spec import WarmUp, WarmUpRequest

_SUCCESS = range(200, 300)
_BEGINNING = "warming up: "
_MOST_OF_LINE = 160


@dataclass(frozen=True, slots=True)
class WarmingRoute:
    """A route whose replica is warmed up since `started_at`. `last_seen`: its reason, as `WarmUpProgress` wrote it."""

    started_at: datetime
    warmed_at: datetime | None
    last_seen: str


@dataclass(frozen=True, slots=True)
class WarmUpAnswer:
    """An answer that took these seconds to its end. `status`: None: none came, as `line` says.

    `line`: the first line of its body.
    """

    seconds: float
    status: int | None
    line: str = ""

    @property
    def is_success(self) -> bool:
        """Whether it is 2xx, however slow."""
        return self.status in _SUCCESS

    def __str__(self) -> str:
        if self.is_success:
            return f"the last took {self.seconds:.1f} s"
        line = self.line[:_MOST_OF_LINE]
        if self.status is None:
            return f"the last failed: {line}"
        return f"the last was {self.status}: {line}" if line else f"the last was {self.status}"


@dataclass(frozen=True, slots=True)
class WarmUpProgress:
    """How far a warm-up is: `done` requests have their good answers, the next one has `in_a_row`."""

    warm_up: WarmUp
    done: int = 0
    in_a_row: int = 0
    last: WarmUpAnswer | None = None

    @property
    def request(self) -> WarmUpRequest | None:
        """The one to send now; None once every one has its answers."""
        return self.warm_up.requests[self.done] if self.done < len(self.warm_up.requests) else None

    def with_answer(self, answer: WarmUpAnswer) -> "WarmUpProgress":
        """A bad answer, and a slow one, end the row."""
        request = self.request
        if request is None:
            return self
        if not answer.is_success or answer.seconds >= request.under_seconds:
            return WarmUpProgress(self.warm_up, self.done, 0, answer)
        if self.in_a_row + 1 < request.times:
            return WarmUpProgress(self.warm_up, self.done, self.in_a_row + 1, answer)
        return WarmUpProgress(self.warm_up, self.done + 1, 0, answer)

    def __str__(self) -> str:
        """E.g. "warming up: 2 of 3 answers under 2 s, the last took 4.8 s"."""
        request = self.request
        if request is None:
            return f"{_BEGINNING}all requests are answered fast"
        many = len(self.warm_up.requests)
        which = f"{request}, request {self.done + 1} of {many}: " if many > 1 else ""
        last = f", {self.last}" if self.last else ""
        return f"{_BEGINNING}{which}{self.in_a_row} of {request.times} answers under {request.under_seconds:g} s{last}"


def words_at_first(warm_up: WarmUp | None) -> str:
    """The reason of a route whose replica has just begun to be warmed up."""
    return str(WarmUpProgress(warm_up)) if warm_up else ""


def is_held_back(warm_up: WarmUp | None, was: RouteStatus, status: RouteStatus, warmed_at: datetime | None) -> bool:
    """Whether a new replica stays provisioning instead of this status, since it is not warm yet."""
    is_cold = warm_up is not None and was is RouteStatus.PROVISIONING and warmed_at is None
    return is_cold and status in (RouteStatus.HEALTHY, RouteStatus.UNHEALTHY)


def judge_warm_up(warm_up: WarmUp, route: WarmingRoute, result: ProbeResult, now: datetime) -> HealthVerdict:
    """The next status of a replica that is warmed up, after one look. Without a probe `is_answered` is true."""
    if not result.running:
        return HealthVerdict(RouteStatus.FAILED, 0, result.detail)
    if route.warmed_at is not None and result.is_answered:
        return HealthVerdict(RouteStatus.HEALTHY, 0, result.detail)
    if now < route.started_at + timedelta(seconds=warm_up.at_most_seconds):
        return HealthVerdict(RouteStatus.PROVISIONING, 0)
    detail = result.detail if route.warmed_at else route.last_seen.removeprefix(_BEGINNING)
    return HealthVerdict(
        RouteStatus.FAILED, 0, f"not warm {warm_up.at_most_seconds:g} s after it was healthy: {detail}"
    )
