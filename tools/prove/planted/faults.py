"""Faults to plant in the shipped code, and the start that shows each: proofs that the search would find it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from domain.cycle.rollout import turned_back
from domain.model.canary import CanaryState
from domain.model.decision import Decision, Waits, WaitsFor
from domain.model.deployment import Deployment, Rollout, Route, StartFailures
from domain.model.states import RolloutOutcome, RouteStatus
from domain.steering import verbs
from domain.steering.activation import ActivationRequest
from domain.steering.command_effect import Context, Effect
from domain.strategies.blue_green import BlueGreenSpec, BlueGreenStrategy, _promoted
from domain.strategies.budget import Buckets, Budget, rounded_up
from domain.strategies.canary.judge_step import Judgement, judgement
from domain.strategies.canary.steps import CanarySpec
from domain.strategies.converge import hold_back
from domain.strategies.rolling_update import RollingUpdateSpec, RollingUpdateStrategy
from tests.support.pictures.specs import QUICK_JUDGE
from tools.prove.starts import Start

_WAVES, _GREEN, RETRY = RollingUpdateStrategy.evaluate_cycle, BlueGreenStrategy.evaluate_cycle, verbs.retry


@dataclass(frozen=True, slots=True)
class Fault:
    """`places`: what is replaced, each as the module or the class that looks it up, and its name; by `wrong`."""

    name: str
    places: tuple[str, ...]
    wrong: Callable[..., Any]
    start: Start


def rolling(n: int, s: int | str, u: int | str, *, size: int | None = None, **more: object) -> Start:
    return Start("rolling_update", (("max_surge", s), ("max_unavailable", u), *more.items()), n, size)


def blue_green(n: int, **spec: object) -> Start:
    return Start("blue_green", tuple(spec.items()), n)


def canary(**spec: object) -> Start:
    return Start("canary", tuple(spec.items()), 1)


def _best_first(routes: Iterable[Route]) -> list[Route]:
    return sorted(routes, key=lambda route: (route.status is not RouteStatus.HEALTHY, route.created_at, route.id))


def _rounded_up(desired: int, surge: int | str, unavailable: int | str) -> Budget:
    missing = min(rounded_up(unavailable, desired), desired)
    return Budget(desired, desired + rounded_up(surge, desired), desired - missing)


def _swap_early(
    self: RollingUpdateStrategy, deployment: Deployment, spec: RollingUpdateSpec, now: datetime
) -> Decision:
    if all(route.revision_id == deployment.deploying_revision_id for route in deployment.active_routes):
        return Decision.success("no old one is left")
    return _WAVES(self, deployment, spec, now)


def _all_foreign(buckets: Buckets, budget: Budget) -> list[Route]:  # noqa: ARG001
    return list(buckets.foreign)


def _promote_at_once(self: BlueGreenStrategy, deployment: Deployment, spec: BlueGreenSpec, now: datetime) -> Decision:
    if deployment.rollout and deployment.rollout.promote_requested and deployment.deploying_revision_id:
        return _promoted(Buckets.of(deployment.routes, deployment.deploying_revision_id, now), [], spec, now)
    return _GREEN(self, deployment, spec, now)


def _time_lost(rollout: Rollout, now: datetime) -> Rollout:  # noqa: ARG001
    return replace(rollout, clock_stopped_at=None)


def _size_lost(
    deployment: Deployment, last: ActivationRequest | None, outcome: RolloutOutcome | None, asking: Context
) -> Effect:
    return RETRY(deployment, replace(last, desired=None) if last else None, outcome, asking)


def _back_with_its_size(deployment: Deployment, now: datetime, *, at_once: bool) -> Deployment:
    return replace(turned_back(deployment, now, at_once=at_once), desired_replicas=deployment.desired_replicas)


def _seldom(canary: CanaryState, spec: CanarySpec, now: datetime) -> Judgement:
    return replace(judgement(canary, spec, now), next_at=None)


def _at_once(failures: StartFailures) -> datetime:
    return failures.last_at


def _never_again(decision: Decision, deployment: Deployment, now: datetime) -> Decision:
    return (
        Decision.wait(Waits(WaitsFor.TIME, "it failed"))
        if deployment.start_failures
        else hold_back(decision, deployment, now)
    )


FAULTS = (
    Fault("no version fence", ("tools.prove.state.is_fresh",), lambda *_: True, rolling(2, 1, 1)),
    Fault("lost worst-first", ("domain.strategies.rolling_update.worst_first",), _best_first, rolling(2, 1, 1)),
    Fault(
        "parked ones counted",
        ("domain.strategies.budget.Buckets.used_places",),
        lambda buckets, _: buckets.live + len(buckets.parked),
        blue_green(1, auto_promote=True, scale_down_delay_seconds=60),
    ),
    Fault("wrong rounding", ("domain.strategies.rolling_update.surge_budget",), _rounded_up, rolling(3, "50%", "50%")),
    Fault("no recheck", ("domain.strategies.budget.Buckets.next_change_at",), lambda *_: None, rolling(2, 1, 0)),
    Fault(
        "swap before ready",
        ("domain.strategies.rolling_update.RollingUpdateStrategy.evaluate_cycle",),
        _swap_early,
        rolling(1, 1, 0),
    ),
    Fault(
        "stopping ones not counted",
        ("domain.strategies.budget.Buckets._counted_stopping",),
        lambda *_: 0,
        rolling(2, 0, 1, count_stopping=True),
    ),
    Fault("converge drains before ready", ("domain.strategies.converge._foreign",), _all_foreign, rolling(2, 1, 0)),
    Fault(
        "a rollback only clears the pointer",
        ("domain.handlers.deploying.DeployingRollingBackHandler.decide",),
        lambda *_: Decision.success("the pointer is cleared"),
        rolling(1, 1, 0),
    ),
    Fault(
        "promoted without a complete green",
        ("domain.strategies.blue_green.BlueGreenStrategy.evaluate_cycle",),
        _promote_at_once,
        blue_green(2),
    ),
    Fault(
        "the clock is not stopped while paused",
        ("domain.steering.verbs.with_clock_stopped",),
        lambda rollout, _: rollout,
        rolling(1, 1, 0),
    ),
    Fault(
        "a pause counts as time",
        ("domain.cycle.effects.with_clock_running", "domain.handlers.base.with_clock_running"),
        _time_lost,
        rolling(1, 1, 0),
    ),
    Fault(
        "a judge is not looked at", ("domain.strategies.canary.strategy.judgement",), _seldom, canary(judge=QUICK_JUDGE)
    ),
    Fault(
        "a failed start is tried again at once",
        ("domain.strategies.converge.next_start_at",),
        _at_once,
        rolling(1, 1, 0),
    ),
    Fault(
        "what failed is never tried again", ("domain.strategies.converge.hold_back",), _never_again, rolling(1, 1, 0)
    ),
    Fault("a retry loses the size", ("domain.steering.verbs.retry",), _size_lost, rolling(1, 1, 0, size=2)),
    Fault(
        "the way back keeps the new size",
        ("domain.steering.verbs.turned_back",),
        _back_with_its_size,
        rolling(1, 1, 0, size=2),
    ),
)
