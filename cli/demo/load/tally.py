"""Counts the results of requests, phase by phase, and reports them as plain data: Unix times, durations in seconds."""

import math
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cli.demo.load.mix import PlannedRequest

_FAILURES_KEPT = 5000


class FailureKind(StrEnum):
    """The ways in which a request can fail, as its sender sees it."""

    CONNECT = "connect"
    RESET = "reset"
    NO_ANSWER = "no answer"
    STATUS = "status"
    TRUNCATED = "truncated"
    WRONG_BODY = "wrong body"
    NOT_SENT = "not sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRequest:
    """One failed request. `started_at` is None when it never got a connection; `detail` holds what came back."""

    kind: FailureKind
    request: str
    idempotent: bool
    due_at: float
    started_at: float | None
    failed_at: float
    detail: str

    @property
    def name(self) -> str:
        """The kind; of an answer its status code."""
        return self.detail[:3] if self.kind is FailureKind.STATUS else self.kind.value


@dataclass(slots=True, kw_only=True)
class Seen:
    """One revision in the good answers. `first_started` and `last_started`: when those requests were sent."""

    answers: int = 0
    first_started: float
    last_started: float
    first_answered: float
    last_answered: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """The requests that were due in one phase.

    Latencies count from when a request was due, and without the time it takes by its own wish. `lag`: how late the
    generator itself was in sending. `failures` holds the first ones; `failed` counts all by name.
    """

    name: str
    began_at: float
    ended_at: float
    requests: int
    answered: int
    failed: dict[str, int]
    failures: tuple[FailedRequest, ...]
    kinds: dict[str, int]
    revisions: dict[str, Seen]
    p50: float
    p99: float
    worst: float
    lag_p99: float
    lag_worst: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """A whole run. `cpu_seconds` is what its process used."""

    phases: tuple[PhaseReport, ...]
    cpu_seconds: float


@dataclass(slots=True, eq=False)
class Exchange:
    """A request under way, by the steady clock. `status`: 0 while nothing came back; `revision`: from the answer."""

    planned: PlannedRequest
    tally: "Tally"
    due: float
    started: float | None = None
    status: int = 0
    revision: str = ""


@dataclass(slots=True, eq=False)
class Tally:
    """The results of the requests that were due in one phase; any thread may read it meanwhile.

    `answers`: by status and by the revision that the answer names, (0, "") where none came. `epoch`: what makes Unix
    seconds of the steady clock.
    """

    name: str
    epoch: float
    began_at: float
    ended_at: float = 0.0
    requests: int = 0
    answers: Counter[tuple[int, str]] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    failures: list[FailedRequest] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    revisions: dict[str, Seen] = field(default_factory=dict)
    latencies: "array[float]" = field(default_factory=lambda: array("d"), repr=False)
    lags: "array[float]" = field(default_factory=lambda: array("d"), repr=False)

    def note_sent(self, exchange: Exchange, now: float) -> None:
        self.requests += 1
        self.kinds[exchange.planned.kind] += 1
        self.lags.append(now - exchange.due)

    def note_answer(self, exchange: Exchange, now: float) -> None:
        self.answers[exchange.status, exchange.revision] += 1
        self.latencies.append(max(0.0, now - exchange.due - exchange.planned.takes))
        started, answered_at = self.epoch + (exchange.started or exchange.due), self.epoch + now
        new = Seen(first_started=started, last_started=started, first_answered=answered_at, last_answered=answered_at)
        counts = self.revisions.setdefault(exchange.revision, new)
        counts.answers += 1
        counts.first_started = min(counts.first_started, started)
        counts.last_started = max(counts.last_started, started)
        counts.last_answered = answered_at

    def failed_with(self, exchange: Exchange, kind: FailureKind, detail: str, now: float) -> None:
        failure = FailedRequest(
            kind=kind,
            request=exchange.planned.kind,
            idempotent=exchange.planned.idempotent,
            due_at=self.epoch + exchange.due,
            started_at=None if exchange.started is None else self.epoch + exchange.started,
            failed_at=self.epoch + now,
            detail=detail,
        )
        self.answers[exchange.status, exchange.revision] += 1
        self.failed[failure.name] += 1
        if len(self.failures) < _FAILURES_KEPT:
            self.failures.append(failure)

    def met(self, revision: str) -> int:
        """Count the requests that this revision answered, well or not."""
        return sum(count for (_, name), count in dict(self.answers).items() if name == revision)

    def by_revision(self, status: int) -> dict[str, int]:
        """Count the answers with this status that name a revision, by its name."""
        return {name: count for (got, name), count in dict(self.answers).items() if got == status and name}

    def report(self) -> PhaseReport:
        latencies, lags = sorted(self.latencies), sorted(self.lags)
        return PhaseReport(
            name=self.name,
            began_at=self.began_at,
            ended_at=self.ended_at,
            requests=self.requests,
            answered=len(latencies),
            failed=dict(self.failed),
            failures=tuple(self.failures),
            kinds=dict(self.kinds),
            revisions=self.revisions,
            p50=quantile(latencies, 0.5),
            p99=quantile(latencies, 0.99),
            worst=quantile(latencies, 1.0),
            lag_p99=quantile(lags, 0.99),
            lag_worst=quantile(lags, 1.0),
        )

    def __str__(self) -> str:
        """0 of 2519 requests failed (2 reset)."""
        kinds = ", ".join(f"{count} {name}" for name, count in self.failed.most_common())
        return f"{self.failed.total()} of {self.requests} requests failed{f' ({kinds})' if kinds else ''}"


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that `share` of them do not exceed; 0.0 of none."""
    if not ordered:
        return 0.0
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]
