"""What a load has seen, phase by phase, as plain data. All times are Unix seconds, all durations seconds."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from pydantic import TypeAdapter


class FailureKind(StrEnum):
    """How a request can fail, as its sender sees it."""

    CONNECT = "connect"
    RESET = "reset"
    TIMEOUT = "timeout"
    STATUS = "status"
    TRUNCATED = "truncated"
    WRONG_BODY = "wrong body"
    NOT_SENT = "not sent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
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
        """The kind, with the status code when there is one."""
        return f"{self.kind.value} {self.detail[:3]}" if self.kind is FailureKind.STATUS else self.kind.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One revision in the answers. `first_started` and `last_started`: when those requests were sent."""

    answers: int
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
    failures: tuple[Failure, ...]
    kinds: dict[str, int]
    revisions: dict[str, Seen]
    p50: float
    p99: float
    worst: float
    lag_p99: float
    lag_worst: float

    @property
    def failed_in_all(self) -> int:
        """How many requests failed."""
        return sum(self.failed.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadReport:
    """A whole run. `cpu_seconds` is what the generator used."""

    phases: tuple[PhaseReport, ...]
    cpu_seconds: float

    @property
    def requests(self) -> int:
        """Of all phases."""
        return sum(phase.requests for phase in self.phases)

    @property
    def failed(self) -> Counter[str]:
        """Of all phases, by name."""
        return sum((Counter(phase.failed) for phase in self.phases), Counter())


REPORT = TypeAdapter(LoadReport)
