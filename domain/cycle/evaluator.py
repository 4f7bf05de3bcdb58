"""Asks the strategy of each rollout for a decision."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from domain.model.decision import Decision, RouteChanges, Waits, WaitsFor
from domain.model.deployment import Deployment, Rollout
from domain.model.policy import DeploymentPolicy
from domain.model.states import PREPARING, ROLLING_BACK, RouteStatus
from domain.strategies.base import AbstractDeploymentStrategy
from domain.strategies.budget import Budget, ids, next_end_at, worst_first
from domain.strategies.builtin import STRATEGIES, UNKNOWN, DeploymentStrategyRegistry
from domain.strategies.converge import hold_back, meanwhile, nowhere_to_go
from domain.strategies.in_place import widest, within_devices


def is_unproven(rollout: Rollout) -> bool:
    """Whether callers send requests and the new revision has answered none; False where no limit would undo that."""
    limits = rollout.policy.limits
    is_asked = rollout.in_use and rollout.unanswered is not None and not rollout.is_undo
    return is_asked and limits.unanswered is not None and limits.unanswered_within_seconds > 0


def with_old_at_hand(decision: Decision, deployment: Deployment, budget: Budget, now: datetime) -> Decision:
    """Park the last replicas of the current revision, for unanswered_within_seconds, until the first answer.

    no requests, or one was answered                    -> drained
    an undo, count_stopping, or no limit of unanswered  -> drained
    n is 0, or it was parked before                     -> drained
    another old one stays                               -> drained
    otherwise                                           -> ceiling - n healthy ones are parked, the rest drained

    rolling update, surge 1:  ■|■■  →  □|■■■ done    blue-green:  ■■|□□  →  □□|■■ done    recreate: ceiling n, none
    """
    rollout, drained = deployment.rollout, set(decision.changes.drain_route_ids)
    if rollout is None or not drained or not budget.desired or budget.count_stopping:
        return decision
    current = [route for route in deployment.active_routes if route.revision_id == deployment.current_revision_id]
    old = [route for route in current if route.parked_until is None]
    if any(route.id not in drained for route in old):
        return decision
    well = [r for r in worst_first(old) if r.id in drained and r.status is RouteStatus.HEALTHY and not r.is_misplaced]
    parked = ids(well[max(0, len(well) - budget.ceiling + budget.desired) :])
    if not parked:
        return decision
    until = now + timedelta(seconds=rollout.policy.limits.unanswered_within_seconds)
    stays = tuple(route_id for route_id in decision.changes.drain_route_ids if route_id not in parked)
    changes = replace(decision.changes, drain_route_ids=stays) + RouteChanges.park(parked, until)
    return replace(
        decision, changes=changes, reason=f"{decision.reason}; {len(parked)} of them parked until it answers"
    )


@dataclass(frozen=True, slots=True)
class StrategyEvaluationSummary:
    """The decision for each deployment, or its error."""

    assignments: Mapping[UUID, Decision]
    errors: Mapping[UUID, str]


@dataclass(frozen=True, slots=True)
class DeploymentStrategyEvaluator:
    """Finds strategies by the name in the rollout's copy of the policy."""

    strategies: DeploymentStrategyRegistry

    def strategy_of(self, policy: DeploymentPolicy) -> AbstractDeploymentStrategy[Any]:
        """The policy's strategy; UNKNOWN if this release lacks it or cannot read its settings."""
        strategy = self.strategies.get(policy.strategy)
        return strategy if strategy and isinstance(policy.spec, strategy.spec_model) else UNKNOWN

    def evaluate_one(self, deployment: Deployment, now: datetime) -> Decision:
        """The next step forward. Raises ValueError without a rollout."""
        if deployment.rollout is None:
            raise ValueError(f"{deployment.name} is deploying without a rollout")
        if deployment.paused_at is not None:
            return self.standing(deployment, paused(deployment), now)
        policy = deployment.rollout.policy
        if reason := policy.limits.why_left(deployment.rollout.unanswered):
            return Decision.give_up(reason, harms=True)
        if deployment.hold is not None:
            return self.standing(deployment, Decision.held(deployment.hold), now)
        strategy = self.strategy_of(policy)
        decision = strategy.evaluate_cycle(deployment, policy.spec, now)
        if decision.waits is not None and decision.waits.kind is WaitsFor.PERSON:
            verb = "promote" if strategy.promotion else "abort"  # whatever it says itself might be refused
            decision = decision.waiting_for(replace(decision.waits, typed=f"rollway {verb} {deployment.name}"))
        decision = hold_back(decision, deployment, now)
        if not is_unproven(deployment.rollout):
            return decision
        return with_old_at_hand(decision, deployment, strategy.budget_of(deployment, policy.spec), now)

    def evaluate_back(self, deployment: Deployment, now: datetime) -> Decision:
        """The strategy's next step back. Raises ValueError without a revision."""
        if deployment.rollout is None or deployment.current_revision_id is None:
            raise ValueError(f"{deployment.name} rolls back to nothing")
        if deployment.paused_at is not None:
            return self.standing(deployment, paused(deployment), now)
        if end := nowhere_to_go(deployment):
            return end
        policy = deployment.rollout.policy
        return self.strategy_of(policy).go_back(deployment, policy.spec, deployment.current_revision_id, now)

    def sent_back(self, deployment: Deployment, rollout: Rollout, *, at_once: bool = False) -> Rollout:
        """The rollout at the start of the way back; `at_once`: the new revision gets no more requests."""
        size = rollout.desired_at_start
        turned = replace(deployment, status=ROLLING_BACK, rollout=rollout, desired_replicas=size)
        canary = self.strategy_of(rollout.policy).turned_back(turned, rollout.policy.spec, at_once=at_once)
        return replace(rollout, canary=canary)

    def wait_of(self, deployment: Deployment, now: datetime) -> Waits | None:
        """The rollout's wait, before its limits apply; None without one."""
        if deployment.status == PREPARING and not deployment.paused_at:
            return None
        decide = self.evaluate_back if deployment.status == ROLLING_BACK else self.evaluate_one
        decision = contained(decide, (deployment,), now).assignments.get(deployment.id)
        return decision.waits if decision else None

    def budget(self, deployment: Deployment) -> Budget:
        """The budget of the running rollout. Raises ValueError without one."""
        if deployment.rollout is None:
            raise ValueError(f"{deployment.name} has no rollout")
        policy = deployment.rollout.policy
        return widest(self.strategy_of(policy).bounds_of(deployment, policy.spec), deployment)

    def standing(self, deployment: Deployment, wait: Decision, now: datetime) -> Decision:
        """The wait, with what keeps its replicas whole meanwhile."""
        if deployment.rollout is None:
            return wait
        policy = deployment.rollout.policy
        repairs = self.strategy_of(policy).keep_whole(deployment, policy.spec, now)
        return meanwhile(wait, hold_back(repairs, deployment, now), next_end_at(deployment.active_routes, now))


def paused(deployment: Deployment) -> Decision:
    return Decision.wait_for_person("it is paused", f"rollway resume {deployment.name}")


EVALUATOR = DeploymentStrategyEvaluator(STRATEGIES)


def contained(
    decide: Callable[[Deployment, datetime], Decision], deployments: Iterable[Deployment], now: datetime
) -> StrategyEvaluationSummary:
    """Decide about each deployment; an exception becomes the error of that one alone."""
    assignments: dict[UUID, Decision] = {}
    errors: dict[UUID, str] = {}
    for deployment in deployments:
        try:
            decision = decide(deployment, now)
            assignments[deployment.id] = within_devices(decision, deployment, now) if deployment.devices else decision
        except Exception as error:  # noqa: BLE001  (one fails, not all)
            errors[deployment.id] = f"{type(error).__name__}: {error}"
    return StrategyEvaluationSummary(assignments, errors)
