"""Recreate: every old replica goes before the first new one comes, for services that cannot run twice.

    1  old ones live, or parked                   -> drain them all
    2  old ones still stopping                    -> wait
    3  new ones out of traffic, or sick too long  -> bring in, drain
    4  fewer than n new ones live                 -> create what is missing, as far as new ones that stop leave room
    5  n new ones ready                           -> completed; otherwise wait

n=2:   ■■|  →  ~~|  →  |◇◇  →  |■■ completed
"""

from datetime import datetime
from typing import ClassVar, Literal

from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment
from domain.model.policy import StrategySpec
from domain.strategies.base import AbstractDeploymentStrategy, deploying_revision
from domain.strategies.budget import Buckets, Budget, ids, worst_first
from domain.strategies.messages import amount_of, complete, creating, for_replicas, steps


class RecreateSpec(StrategySpec):
    """Recreate has no settings: a replica that cannot run twice counts until it has stopped."""

    count_stopping: Literal[True] = True
    """A stopping replica takes up room until it is gone; this cannot be turned off."""

    @property
    def may_surge(self) -> bool:
        """No replica runs next to one of another revision."""
        return False


class RecreateStrategy(AbstractDeploymentStrategy[RecreateSpec]):
    """The ladder above."""

    spec_model: ClassVar[type[StrategySpec]] = RecreateSpec

    def budget(self, spec: RecreateSpec, desired: int, before: int) -> Budget:  # noqa: ARG002
        """At most n live, none has to stay; old and new never run at the same time, on the way back neither."""
        return Budget(desired, desired, 0, alone=True)

    def evaluate_cycle(self, deployment: Deployment, spec: RecreateSpec, now: datetime) -> Decision:
        target, budget = deploying_revision(deployment), self.budget_of(deployment, spec)
        buckets = Buckets.of(deployment.routes, target, now).unparked()
        if foreign := worst_first(buckets.foreign):
            return Decision.moved(amount_of("draining", len(foreign), "old"), RouteChanges.drain(ids(foreign)))
        if buckets.foreign_stopping:
            sentence = f"{len(buckets.foreign_stopping)} old still stopping, and none may be when a new one starts"
            return Decision.wait(for_replicas(sentence, buckets, budget, now))
        replaceable = buckets.replaceable(now)
        idle = [route for route in buckets.idle() if route not in replaceable]
        if idle or replaceable:
            sentence = steps(amount_of("bringing", len(idle), "into traffic"), amount_of("draining", len(replaceable)))
            changes = RouteChanges.promote(ids(idle)) + RouteChanges.drain(ids(replaceable))
            return Decision.moved(sentence, changes, now)
        shortfall = budget.desired - len(buckets.target)
        if create := max(0, min(shortfall, buckets.room(budget))):
            sentence, changes = creating(create, buckets, budget, "new"), RouteChanges.create(target, create)
            return Decision.moved(sentence, changes, buckets.next_change_at(now))
        if len(buckets.ready) >= budget.desired:
            return Decision.success(complete(len(buckets.ready), deployment.rollout))
        sentence = f"{len(buckets.ready)} of {budget.desired} new ready"
        sentence = f"{sentence}; {buckets.occupied(budget)} of at most {budget.ceiling}"
        return Decision.wait(for_replicas(sentence, buckets, budget, now), buckets.next_change_at(now))
