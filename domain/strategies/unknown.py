"""What leads back a rollout whose strategy this release lacks, or whose settings it cannot read."""

from datetime import datetime
from typing import ClassVar

from domain.model.changes import Decision
from domain.model.deployment import Deployment
from domain.model.policy import StrategySpec
from domain.strategies.budget import Budget, resting_budget
from domain.strategies.canary.back import WeighingStrategy


class UnknownStrategy(WeighingStrategy[StrategySpec]):
    """Never goes forward. A rollout that has a weight loses it on the way back, as a canary does."""

    spec_model: ClassVar[type[StrategySpec]] = StrategySpec
    weighs: ClassVar[bool] = False

    def budget(self, spec: StrategySpec, desired: int, before: int) -> Budget:  # noqa: ARG002
        """As narrow as outside a rollout."""
        return resting_budget(desired)

    def evaluate_cycle(self, deployment: Deployment, spec: StrategySpec, now: datetime) -> Decision:  # noqa: ARG002
        """Raise ValueError, which is an error of this rollout alone."""
        name = deployment.rollout.policy.strategy if deployment.rollout else ""
        raise ValueError(f"this release has no strategy {name!r} that knows these settings")
