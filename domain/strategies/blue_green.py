"""Blue-green: a complete green set comes up out of traffic, then all traffic moves to it in one transaction.

    1  no green is live, and every one failed             -> give up: back at once
    2  n greens healthy and none of them lost or starting,
       promote asked, or auto_promote and its delay over  -> promote: green in, blue out, done
    3  until then blue converges to n by itself           -> replace what it lost, drain what is too many or left over
       and, in the same cycle, for green:
    4  a green starting                                   -> wait
    5  fewer than n greens live, or some lost             -> create what is missing, out of traffic
    6  fewer than n greens healthy                        -> wait
    7  otherwise                                          -> wait for the delay, or for a person

With scale_down_delay_seconds blue is parked: out of traffic but running, so that activating it again within that
time brings it back without a start.

n=2:   ■■|  →  ■■|◇◇  →  ■■|□□  →  |■■ promoted
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import ClassVar

from pydantic import Field

from domain.changes import Decision, RouteChanges
from domain.model import Deployment, TrafficStatus, Verdict
from domain.policy import StrategySpec
from domain.strategies.base import AbstractDeploymentStrategy, StrategyCycleResult, deploying_revision
from domain.strategies.buckets import Buckets, grace_ends_at, ids, worst_first
from domain.strategies.budget import Budget
from domain.strategies.converge import converge


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
        failed = deployment.rollout.failed_routes if deployment.rollout else 0
        if not green.own and failed >= budget.desired > 0:
            return Decision.give_up(f"all {failed} green replicas failed")
        complete = not green.starting and not green.lost(now) and len(green.ready) >= budget.desired
        promote_at = _promote_at(green, spec, now)
        if complete and (_asked(deployment) or (spec.auto_promote and now >= promote_at)):
            return _promoted(green, spec, now)
        blue = _keep_blue(deployment, green, budget, now)
        room = budget.ceiling - green.total - blue.changes.created
        return _together(
            blue,
            _wait_to_promote(deployment, spec, promote_at, now)
            if complete
            else _complete_green(deployment, green, budget, room, now),
        )


def _asked(deployment: Deployment) -> bool:
    return deployment.rollout is not None and deployment.rollout.promote_requested


def _promote_at(green: Buckets, spec: BlueGreenSpec, now: datetime) -> datetime:
    """When the newest green has been healthy for the delay; at once when none is wanted."""
    if not green.ready:
        return now
    return max(route.status_changed_at for route in green.ready) + timedelta(seconds=spec.promote_delay_seconds)


def _promoted(green: Buckets, spec: BlueGreenSpec, now: datetime) -> Decision:
    blue = ids(worst_first(green.old))
    if spec.scale_down_delay_seconds:
        leave = RouteChanges.park(blue, now + timedelta(seconds=spec.scale_down_delay_seconds))
    else:
        leave = RouteChanges.drain(blue)
    return Decision.success(
        f"promoted: {len(green.ready)} green in, {len(green.old)} blue out",
        RouteChanges.promote(ids(green.idle())) + leave,
    )


def _keep_blue(deployment: Deployment, green: Buckets, budget: Budget, now: datetime) -> Decision:
    """Blue serves until the promotion, for days when that is a person's: it converges within what green leaves it."""
    if deployment.current_revision_id is None:
        raise ValueError(f"{deployment.name} is deploying without a current revision")
    target = deploying_revision(deployment)
    blue = replace(deployment, routes=tuple(route for route in deployment.routes if route.revision_id != target))
    room = budget.ceiling - max(budget.desired, len(green.own))
    return converge(blue, deployment.current_revision_id, Budget(budget.desired, room, budget.keep), now)


def _complete_green(deployment: Deployment, green: Buckets, budget: Budget, room: int, now: datetime) -> Decision:
    of_all = f"{len(green.ready)} of {budget.desired} green healthy"
    if green.starting:
        return Decision.wait(f"waiting: {of_all}, {len(green.starting)} starting")
    lost = green.lost(now)
    create = max(0, min(budget.desired - len(green.own) + len(lost), room))
    if create or lost:
        target = deploying_revision(deployment)
        changes = RouteChanges.create(target, create, TrafficStatus.INACTIVE) + RouteChanges.drain(ids(lost))
        said = f"creating {create} green out of traffic ({of_all}), draining {len(lost)}"
        return Decision.moved(said, changes, now if lost else None)
    soonest = min(map(grace_ends_at, green.sick), default=None)
    return Decision.wait(f"waiting: {of_all}, {len(green.sick)} unhealthy", soonest)


def _wait_to_promote(deployment: Deployment, spec: BlueGreenSpec, promote_at: datetime, now: datetime) -> Decision:
    if spec.auto_promote:
        seconds = (promote_at - now).total_seconds()
        return Decision.wait(f"waiting: green is healthy, promoted in {seconds:.0f} s", promote_at)
    return Decision.wait_for_person(
        f"waiting: green is healthy; 'rollway promote {deployment.name}' moves the traffic to it"
    )


def _together(blue: Decision, green: Decision) -> Decision:
    """Both from one snapshot. While blue is put right a wait for a person stays one: no clock runs."""
    recheck_at = min((at for at in (blue.recheck_at, green.recheck_at) if at is not None), default=None)
    if not blue.changes:
        return replace(green, recheck_at=recheck_at)
    return replace(
        green,
        verdict=Verdict.NEED_RETRY,
        reason=f"blue: {blue.reason}; {green.reason}",
        changes=green.changes + blue.changes,
        recheck_at=recheck_at,
    )
