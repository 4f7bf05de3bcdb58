"""The canary of a rollout: its weight, and the evidence of its judge, in sums of constant size."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Self

from domain.model.answer_counts import NO_COPIES, Answers, Copies


@dataclass(frozen=True, slots=True)
class Evidence:
    """The answers that came in until `at`, of the `reporting` ones among the `live` proxies.

    `copies`: of requests, that the canary answered before its first weight. `old_failed`: of all that the old revision
    answered, whichever replicas of it are the control. `youngest_at`: when the youngest replica of the canary came up.
    `under_way`: requests that the canary and the control have at `at`, whenever they were sent.
    """

    at: datetime
    canary: Answers
    control: Answers
    reporting: int
    live: int
    copies: Copies = NO_COPIES
    old_failed: int = 0
    youngest_at: datetime | None = None
    under_way: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class BothSides:
    """Requests of both sides, and how many of them failed, by one measure. `answered`: of the canary's, those ended."""

    canary: int = 0
    canary_failed: int = 0
    control: int = 0
    control_failed: int = 0
    answered: int = 0


@dataclass(frozen=True, slots=True)
class EValue:
    """The highest log e-value so far; `logs`: the present ones, one for each alternative."""

    highest: float = 0.0
    logs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Compared:
    """The state of one measure: `harm` over all weights, whose tally is `total`; `good` at the present one."""

    total: BothSides = BothSides()
    harm: EValue = EValue()
    here: BothSides = BothSides()
    good: EValue = EValue()


@dataclass(frozen=True, slots=True)
class Exposure:
    """The requests of each side. `recent`: sent to (canary, control) in the last intervals; `seconds`: of these.

    `first_at` and `at`: the first look at them, and the last; `under_way`: to (canary, control) then. `first_byte`: the
    control's times.
    `surplus`: the pending requests of the canary beyond its share, above 0 since `surplus_since`.
    """

    recent: tuple[tuple[int, int], ...] = ()
    seconds: tuple[float, ...] = ()
    first_at: datetime | None = None
    at: datetime | None = None
    under_way: tuple[int, int] = (0, 0)
    canary: int = 0
    control: int = 0
    first_byte: tuple[int, ...] = Answers().first_byte
    surplus: float = 0.0
    surplus_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Requests that wait for their first byte longer than the control's percentile of the first judged interval.

    `bucket`: where that percentile is; None before. `highest`: the log e-value against "the canary waits for no longer
    than allowed", when `canary` of its requests had waited too long at least, and `control` of the others at most.

    `asked`: sent to the canary by the time from which all has ended that ends in time. `settled`: of the canary's, what
    has ended and is not late. `owed`, `late`: of the control's by that time, what had not ended with a first byte, and
    what came late. `pending`: the same of the intervals since, each with its end. `share`: the highest of the canary.
    """

    highest: float = 0.0
    canary: int = 0
    control: int = 0
    bucket: int | None = None
    asked: int = 0
    settled: int = 0
    late: int = 0
    owed: int = 0
    share: float = 0.0
    pending: tuple[tuple[datetime, int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Sums:
    """All evidence until `at`, folded, so that a look at it costs the same after a day as after a minute.

    `looks` at proxies, `requests` that the canary answered, `copies`, those of them that show harm, `copied`, and
    `old_failed` are of the time since the present weight was known, `since`. `began_at`: the canary's first request.
    `waiting`: for longer than a slow answer takes; `unanswered`: for so long that no answer is waited for any more.
    """

    at: datetime | None = None
    reporting: int = 0
    live: int = 0
    since: datetime | None = None
    looks: int = 0
    requests: int = 0
    copies: Copies = NO_COPIES
    copied: EValue = EValue()
    old_failed: int = 0
    began_at: datetime | None = None
    exposure: Exposure = Exposure()
    failed: Compared = Compared()
    refused: Compared = Compared()
    redirected: Compared = Compared()
    slow: Compared = Compared()
    waiting: Waiting = Waiting()
    unanswered: Waiting = Waiting()


NOTHING_SEEN = Sums()


@dataclass(frozen=True, slots=True)
class CanaryState:
    """The progress of a canary.

    `stage` counts the weights that it has had. `weight` says how many of 10,000 requests the new revision gets; None
    says that its last weight has passed, so all replicas share the requests. Every live proxy had acknowledged the
    weight at `weight_known_at`; None says not yet. `evidence` is what its judge has seen.
    """

    stage: int = 0
    weight: int | None = 0
    weight_known_at: datetime | None = None
    evidence: Sums = NOTHING_SEEN

    def is_at(self, stage: int) -> bool:
        return self.stage == stage

    def at(self, stage: int, weight: int | None) -> Self:
        """Begin a stage, whose weight no proxy knows yet."""
        return type(self)(stage, weight, evidence=self.evidence)

    def with_weight(self, weight: int | None) -> Self:
        """Change the weight within its stage; proxies know it if it is the one that they knew."""
        return replace(self, weight=weight, weight_known_at=self.weight_known_at if weight == self.weight else None)

    def with_weight_known(self, now: datetime) -> Self:
        """Remember that every live proxy has acknowledged a table with the weight."""
        return self if self.weight is None or self.weight_known_at else replace(self, weight_known_at=now)

    def paused(self, paused_at: datetime, now: datetime) -> Self:
        """Let the time of the weight continue from where it stopped for a pause."""
        if self.weight_known_at is None:
            return self
        return replace(self, weight_known_at=self.weight_known_at + (now - max(paused_at, self.weight_known_at)))
