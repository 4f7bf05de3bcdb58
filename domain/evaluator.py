"""Sends each rollout to its strategy; one that raises is an error of that deployment alone."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from domain.backoff import hold_back
from domain.changes import Decision, RouteChanges
from domain.model import Deployment
from domain.strategies import STRATEGIES, DeploymentStrategyRegistry
from domain.strategies.base import RouteCounts
from domain.strategies.budget import Budget, resting_budget


@dataclass(frozen=True, slots=True)
class StrategyEvaluationSummary:
    """Per deployment a decision or an error, and all route changes merged."""

    assignments: Mapping[UUID, Decision]
    errors: Mapping[UUID, str]

    @property
    def merged_changes(self) -> RouteChanges:
        """Everything the batch does to routes."""
        return sum((decision.changes for decision in self.assignments.values()), RouteChanges())


@dataclass(frozen=True, slots=True)
class DeploymentStrategyEvaluator:
    """Dispatch by the name in the rollout's own copy of the policy."""

    strategies: DeploymentStrategyRegistry

    def evaluate(self, deployments: Iterable[Deployment], now: datetime) -> StrategyEvaluationSummary:
        """One decision or one error for each deployment."""
        return contained(self.evaluate_one, deployments, now)

    def evaluate_one(self, deployment: Deployment, now: datetime) -> Decision:
        """The strategy's answer, with failing starts held back. Raises ValueError for an unknown strategy."""
        if deployment.rollout is None:
            raise ValueError(f"{deployment.name} is deploying without a rollout")
        if deployment.paused_at is not None:
            return Decision.wait_for_person("paused; 'rollway resume' goes on")
        policy = deployment.rollout.policy
        strategy = self.strategies.get(policy.strategy)
        if strategy is None:
            raise ValueError(f"no strategy is called {policy.strategy!r}")
        decision = strategy.evaluate_cycle(deployment, policy.spec, now)
        return hold_back(decision, deployment, now)

    def wait_by_counts(self, deployment: Deployment, counts: RouteCounts) -> Decision | None:
        """What `evaluate_one` would answer, where its routes need not be loaded for it."""
        if deployment.rollout is None or deployment.paused_at is not None:
            return None
        policy = deployment.rollout.policy
        strategy = self.strategies.get(policy.strategy)
        if strategy is None or not isinstance(policy.spec, strategy.spec_model):
            return None
        return strategy.wait_by_counts(policy.spec, deployment.desired_replicas, counts)

    def budget(self, deployment: Deployment) -> Budget:
        """The budget of the deployment's running rollout."""
        if deployment.rollout is None:
            raise ValueError(f"{deployment.name} has no rollout")
        policy = deployment.rollout.policy
        strategy = self.strategies.get(policy.strategy)
        # the way back must be open even when the strategy, or what its settings meant, is no longer there
        if strategy is None or not isinstance(policy.spec, strategy.spec_model):
            return resting_budget(deployment.desired_replicas)
        return strategy.budget(policy.spec, deployment.desired_replicas)


EVALUATOR = DeploymentStrategyEvaluator(STRATEGIES)


def contained(
    decide: Callable[[Deployment, datetime], Decision], deployments: Iterable[Deployment], now: datetime
) -> StrategyEvaluationSummary:
    """`decide` for each; whatever it raises becomes that deployment's error, with its type and words."""
    assignments: dict[UUID, Decision] = {}
    errors: dict[UUID, str] = {}
    for deployment in deployments:
        try:
            assignments[deployment.id] = decide(deployment, now)
        except Exception as error:  # noqa: BLE001  (containment is what this function is for)
            errors[deployment.id] = f"{type(error).__name__}: {error}"
    return StrategyEvaluationSummary(assignments, errors)
