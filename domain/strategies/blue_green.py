"""Blue-green: a complete green set comes up out of traffic, then all traffic moves to it in one transaction.

    1  left over from a superseded rollout, out of traffic    -> drain
    2  no green is live, and every one failed                 -> give up: back at once
    3  blue has lost replicas, and green is not ready yet     -> replace them
    4  a green starting                                       -> wait
    5  fewer than n greens live, or some lost                 -> create what is missing, out of traffic
    6  fewer than n greens healthy                            -> wait
    7  promote asked, or auto_promote and its delay over      -> promote: green in, blue out, done
       otherwise                                              -> wait for the delay, or for a person

With scale_down_delay_seconds blue is parked: out of traffic but running, so that activating it again within that
time brings it back without a start.

n=2:   ■■|  →  ■■|◇◇  →  ■■|□□  →  |■■ promoted
"""

from datetime import datetime, timedelta
from typing import ClassVar

from pydantic import Field

from domain.changes import Decision, RouteChanges
from domain.model import Deployment, TrafficStatus
from domain.policy import StrategySpec
from domain.strategies.base import AbstractDeploymentStrategy, StrategyCycleResult, deploying_revision
from domain.strategies.buckets import Buckets, grace_ends_at, ids
from domain.strategies.budget import Budget


class BlueGreenSpec(StrategySpec):
    """Settings of a blue-green rollout. Without `auto_promote` it waits for `promote`, without a deadline."""

    auto_promote: bool = True
    promote_delay_seconds: float = Field(default=0, ge=0, le=7 * 86400)
    scale_down_delay_seconds: float = Field(default=0, ge=0, le=7 * 86400)


class BlueGreenStrategy(AbstractDeploymentStrategy[BlueGreenSpec]):
    """The ladder above."""

    spec_model: ClassVar[type[StrategySpec]] = BlueGreenSpec
    can_be_promoted: ClassVar[bool] = True

    def budget(self, spec: BlueGreenSpec, desired: int) -> Budget:  # noqa: ARG002  (two whole sets, whatever the spec)
        """At most 2n live, never fewer than n serving."""
        return Budget(desired, 2 * desired, desired)

    def evaluate_cycle(self, deployment: Deployment, spec: BlueGreenSpec, now: datetime) -> StrategyCycleResult:
        """One cycle of the ladder above."""
        green = Buckets.of(deployment.routes, deploying_revision(deployment), now)
        budget = self.budget(spec, deployment.desired_replicas)
        return (
            _clear_away(deployment, green, budget, now)
            or _heal_blue(deployment, green, budget)
            or _complete_green(deployment, green, budget, now)
            or _promote(deployment, green, spec, now)
        )


def _clear_away(deployment: Deployment, green: Buckets, budget: Budget, now: datetime) -> Decision | None:
    leftovers = [
        route
        for route in green.old
        if route.traffic is TrafficStatus.INACTIVE and route.revision_id != deployment.current_revision_id
    ]
    if leftovers:
        return Decision.moved(f"draining {len(leftovers)} left over", RouteChanges.drain(ids(leftovers)), now)
    failed = deployment.rollout.failed_routes if deployment.rollout else 0
    if not green.own and failed >= budget.desired > 0:
        return Decision.give_up(f"all {failed} green replicas failed")
    return None


def _heal_blue(deployment: Deployment, green: Buckets, budget: Budget) -> Decision | None:
    """Blue serves until the promotion, so what it loses is replaced."""
    missing = min(budget.desired - len(green.old), budget.ceiling - green.total)
    if missing <= 0 or len(green.ready) >= budget.desired or deployment.current_revision_id is None:
        return None
    return Decision.moved(f"replacing {missing} blue", RouteChanges.create(deployment.current_revision_id, missing))


def _complete_green(deployment: Deployment, green: Buckets, budget: Budget, now: datetime) -> Decision | None:
    of_all = f"{len(green.ready)} of {budget.desired} green healthy"
    if green.starting:
        return Decision.wait(f"waiting: {of_all}, {len(green.starting)} starting")
    lost = green.lost(now)
    missing = budget.desired - len(green.own) + len(lost)
    create = max(0, min(missing, budget.ceiling - green.total))
    if create or lost:
        target = deploying_revision(deployment)
        changes = RouteChanges.create(target, create, TrafficStatus.INACTIVE) + RouteChanges.drain(ids(lost))
        return Decision.moved(f"creating {create} green out of traffic ({of_all}), draining {len(lost)}", changes)
    if len(green.ready) < budget.desired:
        soonest = min(map(grace_ends_at, green.sick), default=None)
        return Decision.wait(f"waiting: {of_all}, {len(green.sick)} unhealthy", soonest)
    return None


def _promote(deployment: Deployment, green: Buckets, spec: BlueGreenSpec, now: datetime) -> Decision:
    newest = max((route.status_changed_at for route in green.ready), default=now)
    promote_at = newest + timedelta(seconds=spec.promote_delay_seconds)
    asked = deployment.rollout is not None and deployment.rollout.promote_requested
    if asked or (spec.auto_promote and now >= promote_at):
        moved = f"{len(green.ready)} green in, {len(green.old)} blue out"
        return Decision.success(
            f"promoted: {moved}", RouteChanges.promote(ids(green.idle())) + _leave(green, spec, now)
        )
    if spec.auto_promote:
        return Decision.wait(f"green is healthy; promoted in {(promote_at - now).total_seconds():.0f} s", promote_at)
    return Decision.wait_for_person(f"green is healthy; 'rollway promote {deployment.name}' moves the traffic to it")


def _leave(green: Buckets, spec: BlueGreenSpec, now: datetime) -> RouteChanges:
    if not spec.scale_down_delay_seconds:
        return RouteChanges.drain(ids(green.old))
    return RouteChanges.park(ids(green.old), now + timedelta(seconds=spec.scale_down_delay_seconds))
