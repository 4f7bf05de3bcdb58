"""A deployment's policy: the strategy with its spec, and the limits of one rollout."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny


class StrategySpec(BaseModel):
    """Base of the settings that a strategy's file declares."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count_stopping: bool = False
    """A stopping replica takes up room until it is gone; always so where a revision needs devices."""

    @property
    def may_surge(self) -> bool:
        """Whether there is room for one more than are wanted."""
        return True

    @property
    def parked_seconds(self) -> float:
        """The time for which old replicas stay parked after a rollout; 0: none is parked."""
        return 0

    @property
    def waits(self) -> Mapping[str, float]:
        """The settings that let healthy replicas wait while clocks run, with their seconds."""
        return {}


class UnreadableSpec(StrategySpec):
    """Settings that this release cannot read: an error of that rollout alone."""

    stored: dict[str, Any]


class RolloutLimits(BaseModel):
    """The limits of a rollout's time and failures."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    timeout_seconds: float = Field(default=1800, gt=0, le=30 * 86400)
    """The longest time of a rollout; waiting for a person stops this clock."""
    progress_timeout_seconds: float | None = Field(default=None, gt=0, le=30 * 86400)
    """The longest time in which no new replica becomes healthy and no old one leaves. Left out: the timeout."""
    failure_budget: int | None = Field(default=None, ge=1, le=10_000)
    """The number of failed new replicas at which the rollout goes back. Left out: min(200, max(3, ceil(n / 2)))."""

    unanswered: int | None = Field(default=20, ge=1, le=1_000_000)
    """The number of requests that a new revision may leave unanswered before its first answer. null: any number."""
    unanswered_within_seconds: float = Field(default=60, ge=0, le=3600)
    """The time after its end in which Rollway still undoes a rollout whose revision answers nobody."""

    def failures_allowed(self, desired: int) -> int:
        """Failed routes at which the rollout is given up, for `desired` replicas."""
        return self.failure_budget or min(200, max(3, -(-desired // 2)))

    def why_left(self, unanswered: int | None) -> str | None:
        """Why a new revision that answered none of these requests is left; None below the limit."""
        if not unanswered or self.unanswered is None or unanswered < self.unanswered:
            return None
        return f"the new revision answered none of {unanswered} requests"


@dataclass(frozen=True, slots=True)
class DeploymentPolicy:
    """A strategy's name, its validated spec and the limits; a rollout keeps its copy."""

    strategy: str
    spec: SerializeAsAny[StrategySpec]
    limits: RolloutLimits = field(default_factory=RolloutLimits)

    def as_json(self) -> dict[str, Any]:
        """The form that `domain.strategies.builtin.parse_policy` reads back."""
        return {
            "strategy": self.strategy,
            "spec": self.spec.model_dump(mode="json"),
            "limits": self.limits.model_dump(mode="json"),
        }
