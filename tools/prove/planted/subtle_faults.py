"""Faults of clocks, weights, counters and budgets. None was found while the search trusted the code that it proves."""

from dataclasses import replace
from datetime import datetime

from domain.cycle.evaluator import DeploymentStrategyEvaluator
from domain.cycle.rollout import unpaused, with_failures_allowed
from domain.cycle.transitions import Bounds, Deadline
from domain.model.canary import CanaryState
from domain.model.decision import Decision, RouteChanges, Stage
from domain.model.deployment import Deployment, Rollout, Route, StartFailures
from domain.strategies.budget import Budget, surge_budget
from domain.strategies.canary.sizing import above_floor
from domain.strategies.canary.steps import CanarySpec
from domain.strategies.canary.strategy import CanaryStrategy
from tests.support.pictures.values_within import canary_of, with_canary
from tools.prove.planted.faults import Fault, canary, rolling
from tools.prove.starts import PROGRESS_SECONDS, Start

_CANARY = CanaryStrategy.evaluate_cycle
_EVALUATE = DeploymentStrategyEvaluator.evaluate_one
_WITHIN = Start("rolling_update", (), 1, progress=PROGRESS_SECONDS)


def _moved_twice(deployment: Deployment, now: datetime) -> Deployment:
    going_on, paused_at = unpaused(deployment, now), deployment.paused_at
    before = canary_of(deployment.rollout).weight_known_at if deployment.rollout else None
    if going_on.rollout is None or before is None or paused_at is None:
        return going_on
    return replace(going_on, rollout=with_canary(going_on.rollout, weight_known_at=before + (now - paused_at)))


def _any_drain(drained: list[Route], rollout: Rollout, stage: Stage | None) -> bool:  # noqa: ARG001
    return bool(drained)


def _first_alone(bounds: Bounds, now: datetime) -> Deadline | None:
    return next((deadline for deadline in bounds.deadlines[:1] if now >= deadline.at), None)


def _proven_at_once(failures: StartFailures, now: datetime) -> bool:  # noqa: ARG001
    return failures.came_up_at is not None


def _known_by_nobody(self: CanaryStrategy, deployment: Deployment, spec: CanarySpec, now: datetime) -> Decision:
    rollout = deployment.rollout
    if rollout is not None and rollout.canary is not None and rollout.canary.weight_known_at is None:
        deployment = replace(deployment, rollout=with_canary(rollout, weight_known_at=now))
    return _CANARY(self, deployment, spec, now)


def _old_ones_gone(self: CanaryStrategy, deployment: Deployment, spec: CanarySpec, now: datetime) -> Decision:
    """Within the floor: none has to stay."""
    decision, rollout = _CANARY(self, deployment, spec, now), deployment.rollout
    if rollout is None or not canary_of(rollout).weight or decision.changes:
        return decision
    old = [route.id for route in deployment.active_routes if route.revision_id == rollout.from_revision_id]
    return Decision.moved("what has nearly all requests goes", RouteChanges.drain(tuple(old)), now) if old else decision


def _through_freezes(self: DeploymentStrategyEvaluator, deployment: Deployment, now: datetime) -> Decision:
    return _EVALUATE(self, replace(deployment, hold=None), now)


def _nobody_counts(self: DeploymentStrategyEvaluator, deployment: Deployment, now: datetime) -> Decision:
    rollout = deployment.rollout and replace(deployment.rollout, unanswered=0)
    return _EVALUATE(self, replace(deployment, rollout=rollout), now)


def _one_is_enough(keep: int, weight: int) -> int:
    return min(keep, int(weight > 0))


def _weight_known(deployment: Deployment, canary: CanaryState, changes: RouteChanges, budget: Budget) -> RouteChanges:
    known = canary if deployment.rollout is None else replace(canary, weight_known_at=deployment.rollout.started_at)
    return above_floor(deployment, known, changes, budget)


def _half_resized(deployment: Deployment, desired: int) -> Rollout:
    return replace(with_failures_allowed(deployment, desired), desired_at_start=desired)


def _progress_asleep(rollout: Rollout, now: datetime) -> Rollout:
    stopped_at = rollout.clock_stopped_at or now
    return replace(rollout, deadline=rollout.deadline + (now - stopped_at), clock_stopped_at=None)


def _one_too_high(desired: int, surge: int | str, unavailable: int | str) -> Budget:
    budget = surge_budget(desired, surge, unavailable)
    return replace(budget, ceiling=budget.ceiling + (desired > 1))


SUBTLE_FAULTS = (
    Fault(
        "a pause before the weight is known moves its seconds twice",
        ("domain.steering.verbs.unpaused", "domain.steering.activation.unpaused"),
        _moved_twice,
        canary(steps=[{"weight": "5%", "seconds": 10}, "60%"]),
    ),
    Fault("what is replaced counts as progress", ("domain.cycle.effects._is_progress",), _any_drain, rolling(1, 1, 0)),
    Fault(
        "a freeze holds nothing",
        ("domain.cycle.evaluator.DeploymentStrategyEvaluator.evaluate_one",),
        _through_freezes,
        rolling(1, 1, 0),
    ),
    Fault("only the first limit is looked at", ("domain.cycle.transitions.passed",), _first_alone, _WITHIN),
    Fault(
        "what came up is well for good at once",
        ("domain.replicas.status_reports.is_proven",),
        _proven_at_once,
        rolling(1, 1, 0),
    ),
    Fault(
        "a weight that no proxy knows",
        ("domain.strategies.canary.strategy.CanaryStrategy.evaluate_cycle",),
        _known_by_nobody,
        canary(steps=["5%"]),
    ),
    Fault(
        "the last one of a side with requests goes",
        ("domain.strategies.canary.strategy.CanaryStrategy.evaluate_cycle",),
        _old_ones_gone,
        canary(steps=["5%"], max_unavailable=1),
    ),
    Fault(
        "it continues though nobody is answered",
        ("domain.cycle.evaluator.DeploymentStrategyEvaluator.evaluate_one",),
        _nobody_counts,
        rolling(1, 1, 0),
    ),
    Fault(
        "one replica is enough for any share of the requests",
        ("domain.strategies.canary.sizing.needed",),
        _one_is_enough,
        Start("canary", (("steps", ("90%",)), ("max_unavailable", 1)), 3),
    ),
    Fault(
        "old ones leave before every proxy knows the weight",
        ("domain.strategies.canary.sizing.above_floor",),
        _weight_known,
        Start("canary", (("steps", ("50%",)),), 3),
    ),
    Fault(
        "a size keeps the one of the revision",
        ("domain.steering.verbs.resized",),
        _half_resized,
        rolling(1, 1, 0, size=2),
    ),
    Fault(
        "a pause counts as time without progress",
        ("domain.cycle.effects.with_clock_running", "domain.handlers.base.with_clock_running"),
        _progress_asleep,
        _WITHIN,
    ),
    Fault(
        "a ceiling one too high", ("domain.strategies.rolling_update.surge_budget",), _one_too_high, rolling(2, 1, 0)
    ),
)
