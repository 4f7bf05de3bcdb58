"""A deployment without a database, moved by hand: decisions applied, replicas started and stopped."""

from dataclasses import replace
from datetime import datetime

from domain.cycle.effects import after
from domain.cycle.rollout import weight_known
from domain.cycle.transitions import ClassifiedDecision
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment
from domain.model.states import RouteStatus
from domain.planning.simulator import Fate, Fates, World, with_status
from tests.support.pictures.pictures import NOW, ROLLING_BACK


def applied(decision: ClassifiedDecision, now: datetime, *, stopping: bool = False) -> Deployment:
    """The next snapshot, whose weight proxies know. `stopping`: drained routes stay until `stopped`, as they do."""
    deployment = weight_known(after(decision, now), now)
    return deployment if stopping else stopped(deployment)


def stopped(deployment: Deployment) -> Deployment:
    """Every replica that was stopping is gone."""
    left = tuple(route for route in deployment.routes if route.status is not RouteStatus.TERMINATING)
    return replace(deployment, routes=left)


def all_started(deployment: Deployment, now: datetime) -> Deployment:
    """Every provisioning route becomes healthy."""
    starting = [route.id for route in deployment.routes if route.status is RouteStatus.PROVISIONING]
    return with_status(deployment, starting, RouteStatus.HEALTHY, now)


def until_it_waits(deployment: Deployment, now: datetime, most: int = 50) -> Deployment:
    """Cycles while the world stands still and something is due at once."""
    for _ in range(most):
        classified = cycle(deployment, now)
        deployment = applied(classified, now)
        if classified.due_at is None or classified.due_at > now:
            return deployment
    raise AssertionError(f"still moving after {most} cycles in which nothing happened: {classified.reason}")


def world_of(
    deployment: Deployment,
    *,
    start_seconds: float = 1.0,
    stop_seconds: float | None = None,
    starts_fail: bool = False,
    lives_seconds: float | None = None,
) -> World:
    """A world at NOW in which all replicas have one fate."""
    return World(deployment, NOW, Fates(Fate(start_seconds, starts_fail, stop_seconds, lives_seconds)))


def next_to_happen(
    deployment: Deployment, now: datetime, most: int = 4000
) -> tuple[datetime, ClassifiedDecision] | None:
    """The first look at a named time that is no wait, or waits for a person, while nothing else happens; none: None."""
    decision = cycle(deployment, now)
    for _ in range(most):
        if decision.due_at is None:
            return None
        deployment, now = after(decision, now), decision.due_at
        decision = cycle(deployment, now)
        if decision.changes_anything or decision.awaited_verb is not None:
            return now, decision
    assert decision.deployment.status == ROLLING_BACK, f"looked at {most} times, and it still waits: {decision.reason}"
    return None  # on the way back a judge looks on, and no clock ends that
