"""The base of every strategy: its spec, its budget, and one decision for one deployment."""

from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from domain.model.decision import Decision
from domain.model.deployment import Deployment, RouteCounts
from domain.model.policy import DeploymentPolicy, StrategySpec
from domain.strategies.budget import Budget
from domain.strategies.converge import converge, kept_whole, sized_as_kept
from domain.strategies.in_place import within_room
from domain.strategies.weighted import SpecT, UnweightedDefaults

StrategyCycleResult = Decision


class AbstractDeploymentStrategy(UnweightedDefaults[SpecT], ABC):
    """One way to get from the current revision to the deploying one. Stateless; `now` is the database's."""

    spec_model: ClassVar[type[StrategySpec]]
    promotion: ClassVar[str | None] = None
    """The effect of `promote`, in words; None if it has none."""
    exchange: ClassVar[str] = "from the first new replica on"
    """The moment when callers first meet the new revision, and its traffic settings apply."""
    weighs: ClassVar[bool] = False
    """Whether its new revision gets a share of the requests by weight, stage by stage."""

    def undoing(self, policy: DeploymentPolicy) -> DeploymentPolicy:
        """The policy of an undo, in a form that every release can read back."""
        return policy

    @abstractmethod
    def budget(self, spec: SpecT, desired: int, before: int) -> Budget:
        """Bound the way above and below `desired`; `before` replicas were wanted before the rollout."""

    @abstractmethod
    def evaluate_cycle(self, deployment: Deployment, spec: SpecT, now: datetime) -> StrategyCycleResult:
        """The next step of the deployment's rollout: success, moved, wait or give up."""

    def keep_whole(self, deployment: Deployment, spec: SpecT, now: datetime) -> StrategyCycleResult:
        """Replace dead replicas while the rollout is held or paused; nothing goes forward."""
        sized = sized_as_kept(deployment)
        before = deployment.rollout.desired_at_start if deployment.rollout else deployment.desired_replicas
        at_start = replace(deployment, desired_replicas=before)
        return kept_whole(sized, self.budget_of(sized, spec), self.budget_of(at_start, spec), now)

    def go_back(self, deployment: Deployment, spec: SpecT, target: UUID, now: datetime) -> StrategyCycleResult:
        """Take the next step of the way back to the revision `target`, within the same budget."""
        return converge(deployment, target, self.budget_of(deployment, spec), now)

    def budget_of(self, deployment: Deployment, spec: SpecT) -> Budget:
        """The budget of this cycle, within the devices that are free."""
        bounds = self.bounds_of(deployment, spec)
        return within_room(bounds, deployment) if deployment.devices else bounds

    def bounds_of(self, deployment: Deployment, spec: SpecT) -> Budget:
        """Stopping replicas count if the spec says so, or hold devices."""
        desired, rollout = deployment.desired_replicas, deployment.rollout
        budget = self.budget(spec, desired, rollout.desired_at_start if rollout else desired)
        return replace(budget, count_stopping=True) if spec.count_stopping or deployment.devices else budget

    def wait_by_counts(self, spec: SpecT, desired: int, counts: RouteCounts) -> StrategyCycleResult | None:  # noqa: ARG002
        """The wait of `evaluate_cycle`, where counts alone show it; None if that takes the routes."""
        return None


def deploying_revision(deployment: Deployment) -> UUID:
    """The revision to get to. Raises ValueError outside a rollout."""
    if deployment.deploying_revision_id is None:
        raise ValueError(f"{deployment.name} is deploying without a deploying revision")
    return deployment.deploying_revision_id
