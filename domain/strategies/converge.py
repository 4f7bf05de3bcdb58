"""Converge: bring one revision (the target) to n replicas and drain all others (foreign), within a budget.

If line 1 does not apply, one cycle does all of lines 2 to 4. "Sick too long" means unhealthy or degraded for 30 s.
Misplaced ones in traffic are foreign too.

    1  nothing foreign is left, all n of the target are ready   -> converged
    2  a replica of the target is out of traffic                -> bring it into traffic
    3  create = min(ceiling - live, n - those of the target that are not sick too long)
       with count_stopping: ceiling - live - stopping
       with alone: 0 until the last foreign replica has stopped
    4  drain the worst first, by the first case that finds some:
       foreign ones are live              -> all that are out of traffic, and of those in traffic
                                             at most target ready + foreign in traffic - keep,
                                             misplaced last: another revision may have no weight
       none foreign, target more than n   -> the surplus
       a sick one must be replaced, and
       the ceiling leaves no room for it  -> the sick one
    5  nothing to do in lines 2 to 4                            -> wait
"""

from datetime import datetime
from uuid import UUID

from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment, Route
from domain.model.states import TrafficStatus
from domain.strategies.backoff import hold_back
from domain.strategies.buckets import Buckets, ids, worst_first
from domain.strategies.budget import Budget
from domain.strategies.messages import amount_of, creating, draining, for_replicas, steps
from domain.text.numbers import number_of


def converge(deployment: Deployment, target: UUID, budget: Budget, now: datetime) -> Decision:
    """Decide the next step towards n replicas of `target` alone."""
    buckets = Buckets.of(deployment.routes, target, now, moves=not budget.alone)
    if budget.alone:
        buckets = buckets.unparked()
    idle = buckets.idle()
    if not buckets.foreign and len(buckets.target) == len(buckets.ready) == budget.desired and not idle:
        return Decision.success(f"{budget.desired} of {number_of(budget.desired, 'replica')} healthy")
    replaceable = buckets.replaceable(now)
    create = _shortfall(buckets, replaceable, budget)
    drained = _foreign(buckets, target, budget) if buckets.foreign else _surplus(buckets, budget)
    drained = drained or _in_the_way(buckets, replaceable, budget)
    promoted = [route for route in idle if route not in drained]
    changes = (
        RouteChanges.create(target, create) + RouteChanges.promote(ids(promoted)) + RouteChanges.drain(ids(drained))
    )
    if not changes:
        waits = for_replicas(_incomplete(buckets, budget), buckets, budget, now)
        return Decision.wait(waits, buckets.next_change_at(now))
    step = Decision.moved(
        steps(
            creating(create, buckets, budget),
            amount_of("bringing", len(promoted), "back into traffic"),
            draining(len(drained), budget),
        ),
        changes,
        now if promoted or drained else buckets.next_change_at(now),
    )
    return hold_back(step, deployment, now)


def _shortfall(buckets: Buckets, replaceable: tuple[Route, ...], budget: Budget) -> int:
    if budget.alone and (buckets.foreign or buckets.foreign_stopping):
        return 0
    return max(0, min(buckets.room(budget), budget.desired - (len(buckets.target) - len(replaceable))))


def _foreign(buckets: Buckets, target: UUID, budget: Budget) -> list[Route]:
    out = [route for route in buckets.foreign if route.traffic is TrafficStatus.INACTIVE]
    serving = [route for route in buckets.foreign if route.traffic is TrafficStatus.ACTIVE]
    ready = sum(route.traffic is TrafficStatus.ACTIVE for route in buckets.ready)
    spare = max(0, ready + len(serving) - budget.keep)
    ordered = sorted(worst_first(serving), key=lambda route: route.is_serving and route.revision_id == target)
    return worst_first(out) + ordered[:spare]


def _surplus(buckets: Buckets, budget: Budget) -> list[Route]:
    """n=3, 4 of the target, 1 of them sick: drain the sick one once 3 are ready.

    Until then a starting one counts as the replacement of a sick one, not as surplus.
    """
    surplus = len(buckets.target) - budget.desired
    if buckets.sick and len(buckets.ready) < budget.desired:
        surplus -= len(buckets.starting)
    return worst_first(buckets.target)[: max(0, surplus)]


def _in_the_way(buckets: Buckets, replaceable: tuple[Route, ...], budget: Budget) -> list[Route]:
    if buckets.starting or buckets.live < budget.ceiling:
        return []
    return worst_first(replaceable)[:1]


def _incomplete(buckets: Buckets, budget: Budget) -> str:
    return (
        f"{len(buckets.ready)} of {budget.desired} ready, {len(buckets.starting)} starting, "
        f"{len(buckets.sick)} unhealthy, {len(buckets.foreign)} of other revisions; "
        f"{buckets.occupied(budget)} of at most {budget.ceiling}"
    )
