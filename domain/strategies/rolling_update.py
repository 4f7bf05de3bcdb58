"""Rolling update: a few new replicas start and a few old ones stop each cycle, within one budget.

n = desired, keep = n - max_unavailable. "new" are the live routes of the deploying revision (`target` in the code),
"old" those of any other revision (`foreign`), "new ready" the new ones that are healthy for min_ready_seconds.
A cycle does the first line that applies. Pacing "wave":

    1  a new replica is out of traffic         -> bring it into traffic
    2  a new replica is starting or warming    -> wait; only limits end this wait. What dies while they warm is replaced
    3  no old one is left, new ready >= n      -> completed
    4  create = min(n + surge - old - new, n - new ready)
       drain  = min(new ready + old - keep, old), the worst first; and new ones that are sick for 30 s
                                               -> create and drain in this one cycle
    5  nothing to create or to drain           -> wait

Pacing "continuous" has no line 2; starting replicas use up surge. In line 4:

    create = min(n + surge - old - new, n - new)
    drain  = all old ones that do not serve, and min(old that serve, new ready + old that serve - keep)

With count_stopping, stopping replicas use up surge too: n + surge - old - new - stopping.

n=3 surge=1 unavailable=1, wave:   ■■■|  →  ■■|◇  →  ■■|■  →  ■|■◇  →  ■|■■  →  |■■◇  →  |■■■ completed
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from domain.model.decision import Decision, RouteChanges, Waits, WaitsFor
from domain.model.deployment import Deployment, Route, RouteCounts
from domain.model.policy import DeploymentPolicy, StrategySpec
from domain.strategies.base import AbstractDeploymentStrategy, deploying_revision
from domain.strategies.budget import Amount, Buckets, Budget, ids, is_zero, surge_budget, worst_first
from domain.strategies.converge import meanwhile
from domain.strategies.messages import complete, creating, draining, for_replicas, steps


class RollingUpdateSpec(StrategySpec):
    """Settings of a rolling update."""

    max_surge: Amount = 1
    """The number of replicas above desired that may be live; a percent rounds up."""
    max_unavailable: Amount = 0
    """The number of replicas below desired that may serve; a percent rounds down. Not both may be 0."""
    pacing: Literal["wave", "continuous"] = "wave"
    """wave: a step waits until all new replicas are ready; continuous: starting ones use up surge."""
    min_ready_seconds: float = Field(default=0, ge=0, le=86400)
    """The time for which a new replica must be healthy before it replaces an old one; not in an undo."""
    undo_max_surge: Amount | None = None
    """max_surge of an undo, such as "100%". Left out: max_surge."""
    sleep_seconds: float = Field(default=0, ge=0, le=7 * 86400)
    """The time for which old replicas sleep instead of stopping, if they lend devices."""

    @property
    def parked_seconds(self) -> float:
        return self.sleep_seconds

    @property
    def may_surge(self) -> bool:
        """Whether it is not written as 0."""
        return not is_zero(self.max_surge)

    @property
    def waits(self) -> Mapping[str, float]:
        """The time in which a new replica replaces none."""
        return {"min_ready_seconds": self.min_ready_seconds}

    @model_validator(mode="after")
    def _can_move(self) -> Self:
        for surge in ("max_surge", "undo_max_surge"):
            if is_zero(getattr(self, surge)) and is_zero(self.max_unavailable):
                raise ValueError(
                    f"{surge} and max_unavailable cannot both be 0: nothing could ever move; set one of them to 1"
                )
        return self


class RollingUpdateStrategy(AbstractDeploymentStrategy[RollingUpdateSpec]):
    """Decides each cycle by the ladder above."""

    spec_model: ClassVar[type[StrategySpec]] = RollingUpdateSpec

    def budget(self, spec: RollingUpdateSpec, desired: int, before: int) -> Budget:  # noqa: ARG002  (one size for all)
        """At most n + surge are live, at least n - unavailable serve."""
        return surge_budget(desired, spec.max_surge, spec.max_unavailable)

    def undoing(self, policy: DeploymentPolicy) -> DeploymentPolicy:
        """An undo has its own surge, and proves nothing again."""
        settings = policy.spec.model_dump(include=set(RollingUpdateSpec.model_fields))
        surge = settings["max_surge"] if settings["undo_max_surge"] is None else settings["undo_max_surge"]
        spec = RollingUpdateSpec.model_validate({**settings, "max_surge": surge, "min_ready_seconds": 0})
        return replace(policy, strategy="rolling_update", spec=spec)

    def evaluate_cycle(self, deployment: Deployment, spec: RollingUpdateSpec, now: datetime) -> Decision:
        target, budget = deploying_revision(deployment), self.budget_of(deployment, spec)
        buckets = Buckets.of(deployment.routes, target, now, spec.min_ready_seconds)
        wave = spec.pacing == "wave"
        if idle := buckets.idle():
            return Decision.moved(f"bringing {len(idle)} new into traffic", RouteChanges.promote(ids(idle)), now)
        if wave and (buckets.starting or buckets.warming):
            sentence = _still_coming(len(buckets.starting), len(buckets.warming), len(buckets.ready), budget.desired)
            waits = for_replicas(sentence, buckets, budget, now, min_ready=spec.min_ready_seconds, wave=True)
            wait = Decision.wait(waits, buckets.next_ready_at)
            repairs = wait if buckets.starting else self.keep_whole(deployment, spec, now)
            return wait if repairs.changes.drain_route_ids else meanwhile(wait, repairs)
        if not buckets.foreign and len(buckets.ready) >= budget.desired:
            return Decision.success(complete(len(buckets.ready), deployment.rollout))
        create, foreign = _wave(buckets, budget) if wave else _continuous(buckets, budget)
        replaced = buckets.replaceable(now)
        drained = [*foreign, *replaced]
        if not create and not drained:
            sentence = _blocked(buckets, budget)
            waits = for_replicas(sentence, buckets, budget, now, min_ready=spec.min_ready_seconds)
            return Decision.wait(waits, buckets.next_change_at(now))
        sentence = steps(creating(create, buckets, budget, "new"), draining(len(drained), budget))
        changes = RouteChanges.create(target, create, drain=ids(drained))
        # A drain makes room, so the next cycle follows at once. A wave that also created replicas waits for them,
        # unless it drained a sick new one, whose failure may end it all.
        again = replaced or (drained and not (wave and create))
        return Decision.moved(sentence, changes, now if again else buckets.next_change_at(now))

    def wait_by_counts(self, spec: RollingUpdateSpec, desired: int, counts: RouteCounts) -> Decision | None:
        """Answer line 2 from counts, where it takes no clock."""
        if spec.pacing != "wave" or spec.min_ready_seconds or counts.idle or not counts.starting:
            return None
        return _wait_for(counts.starting, counts.healthy, desired)


def _wave(buckets: Buckets, budget: Budget) -> tuple[int, list[Route]]:
    """Unhealthy old replicas count as serving: safe only because they are drained first."""
    create = max(0, min(buckets.room(budget), budget.desired - len(buckets.ready)))
    drain = max(0, len(buckets.ready) + len(buckets.foreign) - budget.keep)
    return create, worst_first(buckets.foreign)[:drain]


def _continuous(buckets: Buckets, budget: Budget) -> tuple[int, list[Route]]:
    """n=3 s=1 u=1, old 2, new 1 starting: create min(4 - 3, 3 - 1) = 1, drain 2 - 2 = 0."""
    create = max(0, min(buckets.room(budget), budget.desired - len(buckets.target)))
    serving = sum(route.is_serving for route in buckets.foreign)
    spare = max(0, len(buckets.ready) + serving - budget.keep)
    return create, worst_first(buckets.foreign)[: len(buckets.foreign) - serving + min(serving, spare)]


@lru_cache(maxsize=1024)  # few numbers, many waits
def _wait_for(starting: int, ready: int, desired: int) -> Decision:
    return Decision.wait(Waits(WaitsFor.ROUTE, _still_coming(starting, 0, ready, desired)))


def _still_coming(starting: int, warming: int, ready: int, desired: int) -> str:
    parts = []
    if starting:
        parts.append(f"{starting} new starting")
    if warming:
        parts.append(f"{warming} healthy, but not for min_ready_seconds yet")
    return f"{' and '.join(parts)}; {ready} of {desired} ready"


def _blocked(buckets: Buckets, budget: Budget) -> str:
    serving = sum(route.is_serving for route in (*buckets.target, *buckets.foreign))
    return (
        f"{len(buckets.ready)} of {budget.desired} new ready, {len(buckets.starting)} starting, "
        f"{len(buckets.sick)} unhealthy; no room to create ({buckets.occupied(budget)} of at most {budget.ceiling}), "
        f"nothing to spare ({serving} serving, {budget.keep} to keep)"
    )
