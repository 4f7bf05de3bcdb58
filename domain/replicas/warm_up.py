"""Judges whether a healthy new replica is warm, by its answers to the requests of its revision, and by their clock.

its health check succeeds            -> its warm-up begins; it stays provisioning
every request has its good answers   -> warm; healthy with the next successful probe, or at once without a check
an answer is bad, or slow            -> the good answers in a row are counted from 0 again
the clock has run out                -> failed; its reason has the last answer
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
    """A route whose warm-up began at `started_at`. `progress`: its reason, which `WarmUpProgress` wrote."""

    started_at: datetime
    warmed_at: datetime | None
    progress: str


@dataclass(frozen=True, slots=True)
class WarmUpAnswer:
    """An answer, and the seconds until its end. `status`: None where no answer came.

    `line`: the first line of its body, or why no answer came.
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
    """The progress of a warm-up: `done` requests have all their good answers, the next one has `in_a_row` of them."""

    warm_up: WarmUp
    done: int = 0
    in_a_row: int = 0
    last: WarmUpAnswer | None = None

    @property
    def request(self) -> WarmUpRequest | None:
        """The request to send now; None once every request has its good answers."""
        return self.warm_up.requests[self.done] if self.done < len(self.warm_up.requests) else None

    def with_answer(self, answer: WarmUpAnswer) -> "WarmUpProgress":
        """The progress after this answer. A bad or slow answer ends the row."""
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
    """The reason of a route whose warm-up has just begun."""
    return str(WarmUpProgress(warm_up)) if warm_up else ""


def is_held_back(warm_up: WarmUp | None, before: RouteStatus, status: RouteStatus, warmed_at: datetime | None) -> bool:
    """Whether a new replica stays provisioning and does not get this status, since it is not warm yet."""
    is_cold = warm_up is not None and before is RouteStatus.PROVISIONING and warmed_at is None
    return is_cold and status in (RouteStatus.HEALTHY, RouteStatus.UNHEALTHY)


def judge_warm_up(warm_up: WarmUp, route: WarmingRoute, result: ProbeResult, now: datetime) -> HealthVerdict:
    """The next status of a replica in its warm-up, after one look. Without a health check, `is_answered` is true."""
    if not result.running:
        return HealthVerdict(RouteStatus.FAILED, 0, result.detail)
    if route.warmed_at is not None and result.is_answered:
        return HealthVerdict(RouteStatus.HEALTHY, 0, result.detail)
    if now < route.started_at + timedelta(seconds=warm_up.at_most_seconds):
        return HealthVerdict(RouteStatus.PROVISIONING, 0)
    detail = result.detail if route.warmed_at else route.progress.removeprefix(_BEGINNING)
    return HealthVerdict(
        RouteStatus.FAILED, 0, f"not warm {warm_up.at_most_seconds:g} s after it was healthy: {detail}"
    )
