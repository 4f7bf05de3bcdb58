"""A canary as a rollout has it: how far its weights are, and what its judge has seen."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from domain.model.answers import NO_COPIES, Answers, Copies


@dataclass(frozen=True, slots=True)
class Evidence:
    """What came in until `at`, of the `reporting` ones among the `live` proxies.

    `copies`: of requests, that the canary answered before its first weight. `old_failed`: of all that the old revision
    answered, whichever replicas of it are the control. `youngest_at`: when the youngest replica of the canary came up.
    """

    at: datetime
    canary: Answers
    control: Answers
    reporting: int
    live: int
    copies: Copies = NO_COPIES
    old_failed: int = 0
    youngest_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CanaryState:
    """How far a canary is.

    `stage` counts the weights that it has had. `weight` says how many of 10,000 requests the new revision gets; None
    says that its last weight has passed, so all replicas share the requests. Every live proxy had acknowledged the
    weight at `weight_known_at`; None says not yet. `evidence` is what its judge has seen.
    """

    stage: int = 0
    weight: int | None = 0
    weight_known_at: datetime | None = None
    evidence: tuple[Evidence, ...] = ()

    @classmethod
    def stored(cls, stage: int, weight: int | None, weight_known_at: datetime | None) -> Self | None:
        """The canary of a rollout that is stored with these; None where it never had a weight."""
        return cls(stage, weight, weight_known_at) if stage or weight is not None else None
