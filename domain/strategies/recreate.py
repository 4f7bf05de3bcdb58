"""Recreate: every old replica goes before the first new one comes, for what cannot run twice.

    1  old ones live, or parked       -> drain them all
    2  old ones still stopping        -> wait
    3  fewer than n new ones live     -> create what is missing
    4  n new ones ready               -> completed; otherwise wait

n=2:   ■■|  →  |  →  |◇◇  →  |■■ completed
"""

from datetime import datetime
from typing import ClassVar

from domain.changes import Decision, RouteChanges
from domain.model import Deployment
from domain.policy import StrategySpec
from domain.strategies.base import AbstractDeploymentStrategy, StrategyCycleResult, deploying_revision
from domain.strategies.buckets import Buckets, grace_ends_at, ids, still_running, worst_first
from domain.strategies.budget import Budget


class RecreateSpec(StrategySpec):
    """No settings."""


class RecreateStrategy(AbstractDeploymentStrategy[RecreateSpec]):
    """The ladder above."""

    spec_model: ClassVar[type[StrategySpec]] = RecreateSpec

    def budget(self, spec: RecreateSpec, desired: int) -> Budget:  # noqa: ARG002  (there is nothing to set)
        """At most n live, none has to stay, and old and new never run at the same time; on the way back neither."""
        return Budget(desired, desired, 0, alone=True)

    def evaluate_cycle(self, deployment: Deployment, spec: RecreateSpec, now: datetime) -> StrategyCycleResult:
        """One cycle of the ladder above."""
        target = deploying_revision(deployment)
        new = Buckets.of(deployment.routes, target, now).unparked()
        if new.old:
            return Decision.moved(f"draining all {len(new.old)} old", RouteChanges.drain(ids(worst_first(new.old))))
        if stopping := still_running(deployment.routes, target):
            return Decision.wait(f"waiting: {stopping} old still stopping")
        lost = new.lost(now)
        idle = [route for route in new.idle() if route not in lost]
        if idle or lost:
            changes = RouteChanges.promote(ids(idle)) + RouteChanges.drain(ids(lost))
            return Decision.moved(f"bringing {len(idle)} into traffic, draining {len(lost)}", changes, now)
        desired = self.budget(spec, deployment.desired_replicas).desired
        if missing := max(0, desired - len(new.own)):
            return Decision.moved(f"creating {missing} new", RouteChanges.create(target, missing))
        if len(new.ready) >= desired:
            return Decision.success(f"all {len(new.ready)} replicas run the new revision")
        soonest = min(map(grace_ends_at, new.sick), default=None)
        return Decision.wait(f"waiting: {len(new.ready)} of {desired} new ready", soonest)
