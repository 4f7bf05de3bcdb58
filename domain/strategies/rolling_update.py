"""Rolling update: new replicas come and old ones go within one budget, never all at once.

Pacing "wave", each line one cycle, n = desired, keep = n - max_unavailable:

    1  a new replica out of traffic        -> bring it in
    2  a new replica starting or warming   -> wait
    3  no old, new ready >= n              -> completed
    4  create = min(n + surge - old - new, n - new ready)
       drain  = min(new ready + old - keep, old), worst first    both from one snapshot, in one cycle

Pacing "continuous": a replica that is starting uses up surge instead of blocking the cycle:

    create = min(n + surge - old - new, n - new)
    drain  = every old one that does not serve + min(old that serve, all that serve - keep)

n=3 surge=1 unavailable=1, wave:   ■■■|  →  ■■|◇  →  ■■|■  →  ■|■◇  →  ■|■■  →  |■■◇  →  |■■■ completed
"""

from datetime import datetime
from functools import lru_cache
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from domain.changes import Decision, RouteChanges
from domain.model import Deployment, Route
from domain.policy import StrategySpec
from domain.strategies.base import (
    AbstractDeploymentStrategy,
    RouteCounts,
    StrategyCycleResult,
    deploying_revision,
)
from domain.strategies.buckets import Buckets, grace_ends_at, ids, worst_first
from domain.strategies.budget import Amount, Budget, is_zero, surge_budget


class RollingUpdateSpec(StrategySpec):
    """Settings of a rolling update. `min_ready_seconds`: how long healthy before it counts as ready."""

    max_surge: Amount = "25%"
    max_unavailable: Amount = "25%"
    pacing: Literal["wave", "continuous"] = "wave"
    min_ready_seconds: float = Field(default=0, ge=0, le=86400)

    @model_validator(mode="after")
    def _can_move(self) -> Self:
        if is_zero(self.max_surge) and is_zero(self.max_unavailable):
            raise ValueError(
                "max_surge and max_unavailable cannot both be 0: nothing could ever move; set one of them to 1"
            )
        return self


class RollingUpdateStrategy(AbstractDeploymentStrategy[RollingUpdateSpec]):
    """The ladder above."""

    spec_model: ClassVar[type[StrategySpec]] = RollingUpdateSpec

    def budget(self, spec: RollingUpdateSpec, desired: int) -> Budget:
        """At most n + surge live, at least n - unavailable serving."""
        return surge_budget(desired, spec.max_surge, spec.max_unavailable)

    def evaluate_cycle(self, deployment: Deployment, spec: RollingUpdateSpec, now: datetime) -> StrategyCycleResult:
        """One cycle of the ladder above."""
        target = deploying_revision(deployment)
        budget = self.budget(spec, deployment.desired_replicas)
        new = Buckets.of(deployment.routes, target, now, spec.min_ready_seconds)
        if idle := new.idle():
            return Decision.moved(f"bringing {len(idle)} new into traffic", RouteChanges.promote(ids(idle)), now)
        if not new.old and len(new.ready) >= budget.desired:
            return Decision.success(f"all {len(new.ready)} replicas run the new revision")
        if spec.pacing == "wave" and (new.starting or new.warming):
            said = _still_coming(len(new.starting), len(new.warming), len(new.ready), budget.desired)
            return Decision.wait(said, new.next_ready_at)
        create, drain = _wave(new, budget) if spec.pacing == "wave" else _continuous(new, budget)
        drained = [*drain, *new.lost(now)]
        if not create and not drained:
            return Decision.wait(_blocked(new, budget), _next_look(new))
        changes = RouteChanges.create(target, create, drain=ids(drained))
        # what was drained makes room at once; a wave waits for what it created anyway
        again = drained and (spec.pacing == "continuous" or not create)
        return Decision.moved(_moved(create, drained, new, budget), changes, now if again else _next_look(new))

    def wait_by_counts(self, spec: RollingUpdateSpec, desired: int, counts: RouteCounts) -> StrategyCycleResult | None:
        """Line 2 of the ladder, where no clock has a say in it."""
        if spec.pacing != "wave" or spec.min_ready_seconds or counts.idle or not counts.starting:
            return None
        return _wait_for(counts.starting, counts.healthy, desired)


def _wave(new: Buckets, budget: Budget) -> tuple[int, list[Route]]:
    """n=3 s=1 u=1, old 3, new 0: create min(4 - 3, 3) = 1, drain min(3 - 2, 3) = 1.

    Unhealthy old ones count as available; that is safe only because they are drained first.
    """
    create = min(max(0, budget.ceiling - new.total), max(0, budget.desired - len(new.ready)))
    drain = min(max(0, len(new.ready) + len(new.old) - budget.keep), len(new.old))
    return create, worst_first(new.old)[:drain]


def _continuous(new: Buckets, budget: Budget) -> tuple[int, list[Route]]:
    """n=3 s=1 u=1, old 2, new 1 starting: create min(4 - 3, 3 - 1) = 1, drain 2 - 2 = 0."""
    create = max(0, min(budget.ceiling - new.total, budget.desired - len(new.own)))
    serving = sum(route.is_serving for route in new.old)
    spare = max(0, len(new.ready) + serving - budget.keep)
    return create, worst_first(new.old)[: len(new.old) - serving + min(serving, spare)]


def _next_look(new: Buckets) -> datetime | None:
    ends = [grace_ends_at(route) for route in new.sick]
    return min((at for at in (*ends, new.next_ready_at) if at), default=None)


def _moved(create: int, drained: list[Route], new: Buckets, budget: Budget) -> str:
    parts = []
    if create:
        parts.append(f"creating {create} new ({new.total} live + {create} ≤ {budget.ceiling})")
    if drained:
        parts.append(f"draining {len(drained)} (at least {budget.keep} of {budget.desired} stay)")
    return ", ".join(parts)


@lru_cache(maxsize=1024)  # a fleet has many waits and few numbers
def _wait_for(starting: int, ready: int, desired: int) -> Decision:
    return Decision.wait(_still_coming(starting, 0, ready, desired))


def _still_coming(starting: int, warming: int, ready: int, desired: int) -> str:
    parts = []
    if starting:
        parts.append(f"{starting} new starting")
    if warming:
        parts.append(f"{warming} healthy, but not for min_ready_seconds yet")
    return f"waiting: {' and '.join(parts)}; {ready} of {desired} ready"


def _blocked(new: Buckets, budget: Budget) -> str:
    serving = sum(route.is_serving for route in (*new.own, *new.old))
    return (
        f"waiting: {len(new.ready)} of {budget.desired} new ready, {len(new.starting)} starting, "
        f"{len(new.sick)} unhealthy; no room to create ({new.total} live of at most {budget.ceiling}), "
        f"nothing to spare ({serving} serving, {budget.keep} to keep)"
    )
