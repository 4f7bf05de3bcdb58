"""Counting while the load runs."""

import math
import time
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.load.mix import Planned
from bench.load.report import Failure, FailureKind, PhaseReport, Seen

_FAILURES_KEPT = 500


@dataclass(slots=True, eq=False)
class Exchange:
    """A request under way; times are the event loop's."""

    planned: Planned
    phase: "Phase"
    due: float
    started: float | None = None


@dataclass(slots=True)
class _Sightings:
    answers: int
    first_started: float
    last_started: float
    first_answered: float
    last_answered: float


@dataclass(slots=True)
class Phase:
    """What became of the requests that were due while it lasted. Times are the event loop's until `report`."""

    name: str
    began: float
    ended: float = 0.0
    requests: int = 0
    latencies: "array[float]" = field(default_factory=lambda: array("d"))
    lags: "array[float]" = field(default_factory=lambda: array("d"))
    failed: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    revisions: dict[str, _Sightings] = field(default_factory=dict)

    def sent(self, exchange: Exchange, now: float) -> None:
        """A request was due, and it is now."""
        self.requests += 1
        self.kinds[exchange.planned.kind] += 1
        self.lags.append(now - exchange.due)

    def answered(self, exchange: Exchange, revision: str, now: float) -> None:
        """A request was answered as it should be."""
        started = exchange.due if exchange.started is None else exchange.started
        self.latencies.append(max(0.0, now - exchange.due - exchange.planned.takes))
        seen = self.revisions.get(revision)
        if seen is None:
            self.revisions[revision] = _Sightings(1, started, started, now, now)
            return
        seen.answers += 1
        seen.first_started = min(seen.first_started, started)
        seen.last_started = max(seen.last_started, started)
        seen.last_answered = now

    def failed_with(self, exchange: Exchange, kind: FailureKind, detail: str, now: float, epoch: float) -> None:
        """A request was not. `epoch` makes Unix seconds of the loop's."""
        failure = Failure(
            kind=kind,
            request=exchange.planned.kind,
            idempotent=exchange.planned.idempotent,
            due_at=epoch + exchange.due,
            started_at=None if exchange.started is None else epoch + exchange.started,
            failed_at=epoch + now,
            detail=detail,
        )
        self.failed[failure.name] += 1
        if len(self.failures) < _FAILURES_KEPT:
            self.failures.append(failure)

    def report(self, epoch: float) -> PhaseReport:
        """What was seen so far."""
        latencies, lags = sorted(self.latencies), sorted(self.lags)
        return PhaseReport(
            name=self.name,
            began_at=epoch + self.began,
            ended_at=epoch + self.ended,
            requests=self.requests,
            answered=len(latencies),
            failed=dict(self.failed),
            failures=tuple(self.failures),
            kinds=dict(self.kinds),
            revisions={name: _report(seen, epoch) for name, seen in self.revisions.items()},
            p50=quantile(latencies, 0.5),
            p99=quantile(latencies, 0.99),
            worst=quantile(latencies, 1.0),
            lag_p99=quantile(lags, 0.99),
            lag_worst=quantile(lags, 1.0),
        )


def quantile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that `share` of them do not exceed; 0.0 of none."""
    if not ordered:
        return 0.0
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def epoch_of(loop_time: float) -> float:
    """What to add to the event loop's time to get Unix seconds."""
    return time.time() - loop_time


def _report(seen: _Sightings, epoch: float) -> Seen:
    return Seen(
        answers=seen.answers,
        first_started=epoch + seen.first_started,
        last_started=epoch + seen.last_started,
        first_answered=epoch + seen.first_answered,
        last_answered=epoch + seen.last_answered,
    )
