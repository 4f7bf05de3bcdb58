"""A complete strategy: every old replica goes first, then the new ones come. It may be copied to begin another one."""

from datetime import datetime

from domain.changes import RouteChanges
from domain.model import Deployment
from domain.policy import StrategySpec
from domain.strategies.base import AbstractDeploymentStrategy, StrategyCycleResult
from domain.strategies.buckets import Buckets, ids
from domain.strategies.budget import Budget


class RecreateSpec(StrategySpec):
    """Nothing to set."""


class RecreateStrategy(AbstractDeploymentStrategy[RecreateSpec]):
    spec_model = RecreateSpec

    def budget(self, spec: RecreateSpec, desired: int) -> Budget:  # noqa: ARG002  (nothing to set)
        return Budget(desired, ceiling=desired, keep=0)

    def evaluate_cycle(self, deployment: Deployment, spec: RecreateSpec, now: datetime) -> StrategyCycleResult:  # noqa: ARG002
        target, n = deployment.deploying_revision_id, deployment.desired_replicas
        assert target is not None
        new = Buckets.of(deployment.routes, target, now)
        if new.old:
            return StrategyCycleResult.moved("draining the old ones", RouteChanges.drain(ids(new.old)), now)
        if len(new.own) < n:
            return StrategyCycleResult.moved("creating the new ones", RouteChanges.create(target, n - len(new.own)))
        if len(new.ready) >= n:
            return StrategyCycleResult.success(f"{n} new replicas are healthy")
        return StrategyCycleResult.wait(f"waiting: {len(new.ready)} of {n} are healthy")
