"""Converge: bring one revision to n replicas and drain everything else, within a budget.

Scaling, rolling back and activation without a policy are this one function.

    1  a replica of the target out of traffic   -> bring it in
    2  a foreign replica out of traffic         -> drain it at once
    3  create = min(ceiling - live, n - own that are not lost)
       drain  = min(own ready + foreign - keep, foreign), worst first
       a budget of one that runs alone creates nothing before the last foreign one has stopped
    4  no foreign left                          -> drain the surplus of its own, worst first
       no room to replace a lost one            -> drain that one
    5  nothing foreign, own ready = own = n     -> converged
"""

from datetime import datetime
from uuid import UUID

from domain.backoff import hold_back
from domain.changes import Decision, RouteChanges
from domain.model import Deployment, Route, TrafficStatus
from domain.strategies.buckets import Buckets, grace_ends_at, ids, still_running, worst_first
from domain.strategies.budget import Budget


def converge(deployment: Deployment, target: UUID, budget: Budget, now: datetime) -> Decision:
    """The next step towards n replicas of `target` and none of any other revision."""
    own = Buckets.of(deployment.routes, target, now)
    own = own.unparked() if budget.alone else own
    if not own.old and len(own.own) == len(own.ready) == budget.desired and not own.idle():
        return Decision.success(f"{budget.desired} of {budget.desired} replicas are healthy")
    lost = own.lost(now)
    create = max(0, min(budget.ceiling - own.total, budget.desired - (len(own.own) - len(lost))))
    if budget.alone and still_running(deployment.routes, target):
        create = 0
    drained = (_foreign(own, budget) if own.old else _surplus(own, budget)) or _in_the_way(own, lost, budget)
    promoted = [route for route in own.idle() if route not in drained]
    changes = (
        RouteChanges.create(target, create) + RouteChanges.promote(ids(promoted)) + RouteChanges.drain(ids(drained))
    )
    grace_ends = min((at for at in map(grace_ends_at, own.sick) if at > now), default=None)
    if not changes:
        return Decision.wait(_waiting(own, budget), grace_ends)
    again = now if promoted or drained else grace_ends
    moved = Decision.moved(_moved(create, len(promoted), drained, own, budget), changes, again)
    return hold_back(moved, deployment, now)


def _foreign(own: Buckets, budget: Budget) -> list[Route]:
    """Those out of traffic at once; of the rest as many as the target's ready ones make up for."""
    out = [route for route in own.old if route.traffic is TrafficStatus.INACTIVE]
    serving = [route for route in own.old if route.traffic is TrafficStatus.ACTIVE]
    ready = sum(route.traffic is TrafficStatus.ACTIVE for route in own.ready)
    spare = max(0, ready + len(serving) - budget.keep)
    return worst_first(out) + worst_first(serving)[:spare]


def _surplus(own: Buckets, budget: Budget) -> list[Route]:
    """n=3, own 4 of which 1 is sick: the sick one, once 3 are ready. Until then what starts stands in for the sick."""
    surplus = len(own.own) - budget.desired
    if own.sick and len(own.ready) < budget.desired:
        surplus -= len(own.starting)
    return worst_first(own.own)[: max(0, surplus)]


def _in_the_way(own: Buckets, lost: tuple[Route, ...], budget: Budget) -> list[Route]:
    """The worst lost one, when there is no room left to start what replaces it."""
    if own.starting or own.total < budget.ceiling:
        return []
    return worst_first(lost)[:1]


def _moved(create: int, promoted: int, drained: list[Route], own: Buckets, budget: Budget) -> str:
    parts = []
    if create:
        parts.append(f"creating {create} ({own.total} live + {create} ≤ {budget.ceiling})")
    if promoted:
        parts.append(f"bringing {promoted} back into traffic")
    if drained:
        parts.append(f"draining {len(drained)} (at least {budget.keep} of {budget.desired} stay)")
    return ", ".join(parts)


def _waiting(own: Buckets, budget: Budget) -> str:
    return (
        f"waiting: {len(own.ready)} of {budget.desired} ready, {len(own.starting)} starting, "
        f"{len(own.sick)} unhealthy, {len(own.old)} of other revisions; {own.total} live of at most {budget.ceiling}"
    )
