"""The two sides of a canary: the replicas of each on the way to the next weight, and those that may leave.

keep = n - unavailable. A side that gets the share w of the requests has at least ceil(w x keep) that serve. So old ones
leave only for what the canary has by now, and it gets what its replicas carry by now, as proxies acknowledge it:

    old     the most of: ceil((1 - what the canary has by now) x keep), and min(n, n + surge - canary at the step)
    canary  the number that its step wants, or that the ceiling leaves next to those
    weight  that of the step, or canary / keep where that is less

n=4 surge=1, from 25 % to 75 %:   ■■■■|■ 25 %  →  ■■■|■■ 50 %  →  ■■|■■■ 75 %
"""

from dataclasses import dataclass, replace
from datetime import datetime

from domain.model.canary import CanaryState
from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment, Route
from domain.model.states import RouteStatus
from domain.strategies.base import deploying_revision
from domain.strategies.budget import Buckets, Budget, ids, well_placed, worst_first
from domain.strategies.canary.steps import CanarySpec, baseline, is_rising, size_at, weight_at
from domain.strategies.converge import converge
from domain.strategies.messages import amount_of, draining, steps
from domain.text.numbers import WHOLE
from domain.traffic.capacity import carried, needed


@dataclass(frozen=True, slots=True)
class Sizes:
    """The present sizes of both sides, and the weight that they carry once they are healthy.

    `elder`: of the old revision, without the baseline.
    """

    canary: int
    fresh: int
    elder: int
    weight: int


def sizes_at(spec: CanarySpec, canary: CanaryState, stage: int, budget: Budget) -> Sizes:
    """The sizes of both sides, as near to those of this stage as the present weight lets them come."""
    shares, current_weight, weight = 1 + spec.has_baseline, canary.weight or 0, weight_at(spec, stage)
    if not budget.desired:
        return Sizes(0, 0, 0, weight)

    def room_beside(weight: int) -> int:
        return (budget.ceiling - needed(budget.keep, WHOLE - shares * weight)) // shares

    wanted_size = min(size_at(spec, budget, stage), room_beside(weight))
    size = min(wanted_size, room_beside(current_weight))
    elder = max(
        min(budget.desired, budget.ceiling - shares * wanted_size), needed(budget.keep, WHOLE - shares * current_weight)
    )
    reachable = weight if size == wanted_size else min(weight, carried(budget.keep, size))
    return Sizes(size, size if spec.has_baseline else 0, elder, reachable)


def sizes_kept(  # noqa: PLR0913  (all of one look)
    deployment: Deployment, spec: CanarySpec, canary: CanaryState, buckets: Buckets, budget: Budget, now: datetime
) -> Sizes:
    """The sizes while the rollout is held or paused: those of its stage, and no replica of the next stage leaves.

    A weight that is on its way to that of its stage keeps the replicas that it needs by now. A replica that another one
    comes for, as it is sick or on a drained host, makes no side larger. A canary that has not begun takes no place of
    old ones but its own.
    """
    sizes = sizes_at(spec, canary, canary.stage, budget)
    if buckets.live > budget.ceiling or not budget.desired:
        return sizes
    current_weight, new = canary.weight or 0, len(well_placed(buckets.target, now))
    needed_now = needed(budget.keep, current_weight) if is_rising(canary, spec) else sizes.canary
    canary_size = max(new, needed_now if canary.stage else 0)
    young = baseline(deployment, deployment.rollout) if deployment.rollout else ()
    there = min(sizes.fresh, len(well_placed(young, now)))  # those beyond are old ones that were replaced, or have come
    fresh = sizes.fresh if canary.stage else there
    elders = len(well_placed(buckets.foreign, now)) - there
    unclaimed = 0 if canary.stage else budget.ceiling - canary_size - fresh
    return replace(
        sizes, canary=canary_size, fresh=fresh, elder=min(budget.desired, max(sizes.elder, elders, unclaimed))
    )


def completed(  # noqa: PLR0913  (all of one look)
    deployment: Deployment, canary: CanaryState, buckets: Buckets, budget: Budget, sizes: Sizes, now: datetime
) -> tuple[tuple[Decision, Decision], Decision | None]:
    """The next steps of both sides, and their common step, as far as requests let serving replicas leave.

    None where neither needs anything, or every replica that would leave is needed.
    """
    both = sides(deployment, buckets, budget, sizes, now)
    changes = above_floor(deployment, canary, both[0].changes + both[1].changes, budget)
    return both, Decision.moved(step_in_words(deployment, changes, budget), changes, now) if changes else None


def sides(
    deployment: Deployment, buckets: Buckets, budget: Budget, sizes: Sizes, now: datetime
) -> tuple[Decision, Decision]:
    """The next steps of the canary and the old side. The canary's place in the ceiling is its own.

    Replicas of an earlier canary go first: until then their place is the old side's. Where no old replica serves but
    some start, they come first: alone a canary would answer everything.
    """
    if deployment.current_revision_id is None or deployment.rollout is None:
        raise ValueError(f"{deployment.name} is deploying without a current revision")
    target, current = deploying_revision(deployment), deployment.current_revision_id
    new = tuple(route for route in deployment.routes if route.revision_id == target)
    old = tuple(route for route in deployment.routes if route.revision_id != target)
    leftovers = [route for route in buckets.foreign if route.revision_id != current]
    if leftovers:
        sizes = replace(sizes, canary=min(sizes.canary, len(buckets.target)), fresh=0)
    occupied = len(buckets.target) + (len(buckets.stopping) if budget.count_stopping else 0)
    size = sizes.elder + sizes.fresh
    old_budget = Budget(size, budget.ceiling - max(sizes.canary, occupied), size, budget.count_stopping)
    old_side = converge(replace(deployment, routes=old), current, old_budget, now)
    if sizes.fresh and not old_side.changes:
        young = baseline(deployment, deployment.rollout)
        elders = worst_first(route for route in buckets.foreign if route not in young)
        old_side = replace(old_side, changes=RouteChanges.drain(ids(elders[: max(0, len(elders) - sizes.elder)])))
    if not old_side.changes and not any(map(_starts, old)):
        old_side = replace(
            old_side, changes=RouteChanges.drain(ids(worst_first(leftovers)))
        )  # `above_floor` keeps those needed
    live = len(buckets.foreign) + (len(buckets.foreign_stopping) if budget.count_stopping else 0)
    old_first = not any(route.is_serving for route in old) and (old_side.changes.created or any(map(_starts, old)))
    size = min(sizes.canary, len(buckets.target)) if old_first else sizes.canary
    room = Budget(size, budget.ceiling - live - old_side.changes.created, size, budget.count_stopping)
    return converge(replace(deployment, routes=new), target, room, now), old_side


def _starts(route: Route) -> bool:
    return route.status is RouteStatus.PROVISIONING


def above_floor(deployment: Deployment, canary: CanaryState, changes: RouteChanges, budget: Budget) -> RouteChanges:
    """Let serving replicas leave only as far as both sides together, and each for its share, can spare them.

    While a live proxy does not know the weight, nobody leaves who answers.
    """
    promoted, weight = set(changes.promote_route_ids), canary.weight or 0
    coming = [r for r in deployment.routes if r.id in promoted and r.status is RouteStatus.HEALTHY]
    serving = [*(route for route in deployment.routes if route.is_serving), *coming]
    spare = max(0, len(serving) - budget.keep)
    staying = set()
    for is_canary, share in ((True, weight), (False, WHOLE - weight)):
        side = [r for r in serving if (r.revision_id == deployment.deploying_revision_id) is is_canary]
        is_acknowledged = canary.weight_known_at is not None or not weight
        may_leave = min(spare, max(0, len(side) - needed(budget.keep, share))) if is_acknowledged else 0
        here = {route.id for route in side}
        ordered = [id_ for id_ in changes.drain_route_ids if id_ in here]
        staying |= set(ordered[may_leave:])
        spare -= len(ordered[:may_leave])
    return replace(changes, drain_route_ids=tuple(id_ for id_ in changes.drain_route_ids if id_ not in staying))


def step_in_words(deployment: Deployment, changes: RouteChanges, budget: Budget) -> str:
    """E.g. "creating 1 canary, draining 1 (at least 3 of 3 stay)"."""
    target = deploying_revision(deployment)
    new = sum(spec.count for spec in changes.rollout_specs if spec.revision_id == target)
    return steps(
        amount_of("creating", new, "canary"),
        amount_of("creating", changes.created - new, "old"),
        amount_of("bringing", len(changes.promote_route_ids), "into traffic"),
        draining(len(changes.drain_route_ids), budget),
    )
