"""What is judged of a rollout, whatever its strategy: answers at its weights, and to copies before the first one."""

from dataclasses import dataclass

from domain.judge.settings import Judge
from domain.judge.sums import seen
from domain.model.canary import CanaryState, Evidence, Sums


@dataclass(frozen=True, slots=True)
class Judging:
    """`settings`: of its judge; None where only the failed answers to copies are counted.

    `copied`: so many of 10,000 requests that only read are copied before its first weight.
    """

    settings: Judge | None
    copied: int = 0

    @property
    def has_baseline(self) -> bool:
        """Whether the new side is compared with fresh replicas of the old revision."""
        return self.settings is not None and self.settings.baseline == "fresh"

    def is_on(self, canary: CanaryState | None) -> bool:
        """Whether answers are looked at now: at a weight by a judge, and before the first one those to copies."""
        if canary is None or canary.weight is None:
            return False
        return self.settings is not None if canary.weight else bool(canary.stage and self.copied)

    def seen(self, canary: CanaryState, told: Evidence) -> Sums:
        """Add one interval to what has been seen of the canary."""
        copied = 0 if canary.weight else self.copied
        return seen(canary.evidence, told, self.settings, canary.weight_known_at, copied)
