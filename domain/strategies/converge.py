"""Converge: bring one revision to n replicas and drain everything else, within a budget.

Scaling, rolling back and activation without a policy are this one function.

    1  nothing foreign, target ready = target = n   -> converged
    2  a replica of the target out of traffic       -> bring it in
    3  create = min(ceiling - live, n - target that are not replaceable)
       with count_stopping: ceiling - live - stopping
       alone: nothing before the last foreign one has stopped
    4  drain, one of these:
       foreign ones        -> those out of traffic at once; of the others min(target ready + foreign - keep, foreign)
       else a surplus      -> of the target's own
       else no room        -> to replace a sick one: that one
       each the worst first
    5  none of it                                   -> wait
"""

from datetime import datetime
from uuid import UUID

from domain.model.changes import Decision, RouteChanges
from domain.model.deployment import Deployment, Route, TrafficStatus
from domain.strategies.backoff import hold_back
from domain.strategies.buckets import Buckets, ids, worst_first
from domain.strategies.budget import Budget
from domain.strategies.sentences import counted, creating, draining, steps
from domain.strategies.waiting import for_replicas
from domain.words.numbers import number_of


def converge(deployment: Deployment, target: UUID, budget: Budget, now: datetime) -> Decision:
    """The next step towards n replicas of `target` and none of any other revision."""
    buckets = Buckets.of(deployment.routes, target, now)
    if budget.alone:
        buckets = buckets.unparked()
    idle = buckets.idle()
    if not buckets.foreign and len(buckets.target) == len(buckets.ready) == budget.desired and not idle:
        return Decision.success(f"{budget.desired} of {number_of(budget.desired, 'replica')} healthy")
    replaceable = buckets.replaceable(now)
    create = _missing(buckets, replaceable, budget)
    drained = _to_drain(buckets, replaceable, budget)
    promoted = [route for route in idle if route not in drained]
    changes = (
        RouteChanges.create(target, create) + RouteChanges.promote(ids(promoted)) + RouteChanges.drain(ids(drained))
    )
    if not changes:
        waits = for_replicas(buckets, budget, now)
        return Decision.wait(_waiting(buckets, budget), buckets.next_change_at(now), waits)
    moved = Decision.moved(
        steps(
            creating(create, buckets, budget),
            counted("bringing", len(promoted), "back into traffic"),
            draining(len(drained), budget),
        ),
        changes,
        now if promoted or drained else buckets.next_change_at(now),
    )
    return hold_back(moved, deployment, now)


def _missing(buckets: Buckets, replaceable: tuple[Route, ...], budget: Budget) -> int:
    if budget.alone and (buckets.foreign or buckets.foreign_stopping):
        return 0
    return max(0, min(buckets.room(budget), budget.desired - (len(buckets.target) - len(replaceable))))


def _to_drain(buckets: Buckets, replaceable: tuple[Route, ...], budget: Budget) -> list[Route]:
    drained = _foreign(buckets, budget) if buckets.foreign else _surplus(buckets, budget)
    return drained or _in_the_way(buckets, replaceable, budget)


def _foreign(buckets: Buckets, budget: Budget) -> list[Route]:
    """Replicas out of traffic go at once; of the rest as many as the target's ready ones make up for."""
    out = [route for route in buckets.foreign if route.traffic is TrafficStatus.INACTIVE]
    serving = [route for route in buckets.foreign if route.traffic is TrafficStatus.ACTIVE]
    ready = sum(route.traffic is TrafficStatus.ACTIVE for route in buckets.ready)
    spare = max(0, ready + len(serving) - budget.keep)
    return worst_first(out) + worst_first(serving)[:spare]


def _surplus(buckets: Buckets, budget: Budget) -> list[Route]:
    """n=3, own 4 of which 1 is sick: the sick one, once 3 are ready. Until then what starts stands in for the sick."""
    surplus = len(buckets.target) - budget.desired
    if buckets.sick and len(buckets.ready) < budget.desired:
        surplus -= len(buckets.starting)
    return worst_first(buckets.target)[: max(0, surplus)]


def _in_the_way(buckets: Buckets, replaceable: tuple[Route, ...], budget: Budget) -> list[Route]:
    """The worst replaceable one, when live ones alone leave no room to start what replaces it."""
    if buckets.starting or buckets.live < budget.ceiling:
        return []
    return worst_first(replaceable)[:1]


def _waiting(buckets: Buckets, budget: Budget) -> str:
    return (
        f"waiting: {len(buckets.ready)} of {budget.desired} ready, {len(buckets.starting)} starting, "
        f"{len(buckets.sick)} unhealthy, {len(buckets.foreign)} of other revisions; "
        f"{buckets.occupied(budget)} of at most {budget.ceiling}"
    )
