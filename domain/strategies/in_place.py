"""Keeps a decision within the devices that are free, and lets it make room in place.

A strategy decides as if every host had room. Afterwards:

    1  a replica that it creates finds no devices      -> it is not created, and the decision says what it waits for
    2  a sleeper of the same revision has its devices
       free                                            -> the sleeper is woken in place of the new replica
    3  healthy ones leave, and devices are missing     -> the same number leaves where the fewest must leave; first the
                                                          holders of devices that a sleeper has lent
       they can sleep, and the policy gives them time  -> they are parked, and lend their devices
    4  nothing in the decision makes room              -> wait until a parked replica sleeps; else one that is parked,
                                                          or was sick for too long, leaves
    5  a replica that has gone frees its devices later -> look again then

4 devices, n=4, surge 1, unavailable 1:   ■■■■|  →  ■■■ ▽|  →  ■■■|◇  →  ■■■|■  →  ■■ ▽|■  ...  (▽ stopping)
2 devices, n=2, old ones sleep (z):       ■■|  →  z■|  →  z■|◇  →  z■|■  →  zz|■  →  zz|■◇  →  zz|■■
its abort:                                zz|■■  →  zz|■ ▽  →  ◇z|■  →  ■z|■  →  ■z| ▽  →  ■◇|  →  ■■|
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from domain.devices.room import DeviceRoom
from domain.model.decision import Decision, RouteChanges, RouteCreatorSpec, Waits, WaitsFor
from domain.model.deployment import Deployment, Route
from domain.model.states import ROLLING_BACK, RouteStatus, TrafficStatus
from domain.strategies.budget import Budget, grace_ends_at, ids, next_end_at, sick_too_long, worst_first
from domain.text.numbers import number_of


def within_devices(decision: Decision, deployment: Deployment, now: datetime) -> Decision:
    """The decision, without the replicas that find no devices."""
    room = deployment.devices
    if room is None:
        return decision
    if not decision.changes:
        return _with_shortage(decision, deployment, room)
    specs, unplaced = _creatable_specs(decision.changes.rollout_specs, room)
    short = unplaced or any(count == 0 for count in room.free.values())
    changes = _with_sleepers(replace(decision.changes, rollout_specs=specs), deployment, room)
    if short:
        changes = replace(changes, drain_route_ids=_in_turn(changes.drain_route_ids, deployment, room))
    changes = _put_to_sleep(changes, deployment, room, now)
    slept, woken = len(changes.park_route_ids) - len(decision.changes.park_route_ids), len(changes.woken)
    reason = f"{decision.reason}; {slept} of them parked, to sleep" if slept else decision.reason
    reason = f"{reason}; {woken} of them by waking a sleeping one" if woken else reason
    decision = replace(decision, changes=changes, reason=reason)
    return _waiting_for_devices(decision, deployment, room, unplaced, now) if unplaced else decision


def _waiting_for_devices(
    decision: Decision, deployment: Deployment, room: DeviceRoom, unplaced: tuple[UUID, int], now: datetime
) -> Decision:
    """`unplaced`: a revision, and the number of its replicas that find no devices."""
    revision_id, count = unplaced
    words = f"{number_of(count, 'replica')} more finds no devices; {room.shortage.get(revision_id, '')}"
    dozing = _falling_asleep(deployment, room)
    words += f", {len(dozing)} will lend theirs asleep" if dozing else ""
    if not decision.changes and (leaving := _in_the_way(deployment, dozing, now)):
        drained = RouteChanges.drain(ids([leaving]))
        moved = Decision.moved(f"draining 1 that is in the way: {words}", drained, now)
        return replace(moved, clock_stopped=decision.clock_stopped)
    limits = [grace_ends_at(route) for route in dozing if route.status is not RouteStatus.HEALTHY]
    times = (decision.recheck_at, room.frees_at, next_end_at(deployment.active_routes, now), *limits)
    later = min((at for at in times if at and at > now), default=None)
    if not decision.changes:
        letting_go = (*dozing, *(route for route in deployment.routes if not route.is_active))
        return Decision.wait(Waits(WaitsFor.DEVICE, words, letting_go), later, clock_stopped=decision.clock_stopped)
    at_once = decision.recheck_at is not None and decision.recheck_at <= now
    return replace(decision, reason=f"{decision.reason}; {words}", recheck_at=now if at_once else later)


def with_devices(deployment: Deployment, room: DeviceRoom) -> Deployment:
    """The deployment with its room, and the replicas of it that have lent their devices.

    Replicas of a drained host stay where no device of another host is free, unless others come for them.
    """
    routes = tuple(replace(r, has_lent=True) if r.id in room.lent else r for r in deployment.routes)
    live = [route for route in routes if route.is_active and not route.has_lent]
    others_come = len(live) > deployment.desired_replicas or any(r.status is RouteStatus.PROVISIONING for r in live)
    stays = set() if others_come else {revision for revision, free in room.free.items() if not free}
    if stays:
        routes = tuple(replace(r, is_misplaced=r.is_misplaced and r.revision_id not in stays) for r in routes)
    return replace(deployment, devices=room, routes=routes)


def free_devices(deployment: Deployment) -> int | None:
    """The number of replicas of its target revision that find devices; None if they need none."""
    if deployment.devices is None:
        return None
    goes_on = deployment.deploying_revision_id if deployment.status.goes_forward else None
    leads_to = goes_on or deployment.current_revision_id
    return deployment.devices.free.get(leads_to) if leads_to else None


def within_room(budget: Budget, deployment: Deployment) -> Budget:
    """The budget of a deployment that needs devices: only as many replicas as find devices, but at least n.

    n=4, 4 devices, s=1, u=1    ceiling 4, keep 3: in place
    n=4, 4 devices, s=1, u=0    ceiling 5, keep 4: nothing moves until a device is free
    the same on the way back    ceiling 4, keep 3: a bad revision leaves
    """
    free = free_devices(deployment)
    if free is None or budget.keep_in_place is None:
        return budget
    live = sum(r.is_active and not r.has_lent for r in deployment.routes)
    stopping = sum(r.status is RouteStatus.TERMINATING for r in deployment.routes) if budget.count_stopping else 0
    ceiling = max(budget.desired, min(budget.ceiling, live + stopping + free))
    if ceiling > budget.desired:
        return replace(budget, ceiling=ceiling)
    keep = kept_in_place(budget, goes_back=deployment.status == ROLLING_BACK)
    return replace(budget, ceiling=ceiling, keep=keep) if keep < budget.desired else budget


def widest(bounds: Budget, deployment: Deployment) -> Budget:
    """The bounds that Postgres enforces: those of a rollout in place, if the deployment may go in place."""
    if not deployment.devices or bounds.keep_in_place is None:
        return bounds
    return replace(bounds, keep=kept_in_place(bounds, goes_back=True))


def kept_in_place(budget: Budget, *, goes_back: bool) -> int:
    """The floor where no device is free for a new replica. On the way back one replica may always be missing."""
    keep = budget.keep if budget.keep_in_place is None else budget.keep_in_place
    return min(keep, max(0, budget.desired - 1)) if goes_back else keep


def _with_shortage(decision: Decision, deployment: Deployment, room: DeviceRoom) -> Decision:
    """The decision; a wait that lacks replicas, while no device is free, names the shortage."""
    target = deployment.deploying_revision_id or deployment.current_revision_id
    own = [route for route in deployment.active_routes if route.revision_id == target and not route.has_lent]
    coming = any(route.status is RouteStatus.PROVISIONING for route in own)
    waits = decision.waits
    if waits is None or target is None or coming or room.free.get(target) or len(own) >= deployment.desired_replicas:
        return decision
    if waits.kind not in (WaitsFor.ROUTE, WaitsFor.TIME) or not (shortage := room.shortage.get(target)):
        return decision
    return decision.waiting_for(replace(waits, words=f"{waits.words}; needs {shortage}"))


def _creatable_specs(
    specs: Sequence[RouteCreatorSpec], room: DeviceRoom
) -> tuple[tuple[RouteCreatorSpec, ...], tuple[UUID, int] | None]:
    """The replicas that find devices, and the first revision with replicas that find none, with their number."""
    creatable, used, unplaced = [], 0, None
    for spec in specs:
        free = room.free.get(spec.revision_id)
        count = spec.count if free is None else max(0, min(spec.count, free - used))
        used += count if free is not None else 0
        if count:
            creatable.append(replace(spec, count=count))
        if count < spec.count and unplaced is None:
            unplaced = spec.revision_id, spec.count - count
    return tuple(creatable), unplaced


def _with_sleepers(changes: RouteChanges, deployment: Deployment, room: DeviceRoom) -> RouteChanges:
    """Wake sleepers whose devices are free, in place of new replicas."""
    specs: list[RouteCreatorSpec] = []
    woken: list[tuple[UUID, TrafficStatus]] = []
    for spec in changes.rollout_specs:
        able = [r for r in deployment.routes if room.lent.get(r.id) and r.revision_id == spec.revision_id]
        able = [r for r in able if r.is_active and not r.is_misplaced and r.id not in changes.drain_route_ids]
        sleepers = able[: spec.count]
        woken += [(route.id, spec.traffic) for route in sleepers]
        if len(sleepers) < spec.count:
            specs.append(replace(spec, count=spec.count - len(sleepers)))
    return replace(changes, rollout_specs=tuple(specs), woken=tuple(woken)) if woken else changes


def _in_turn(drained: Sequence[UUID], deployment: Deployment, room: DeviceRoom) -> tuple[UUID, ...]:
    """The routes to drain: the same number of each revision; of serving ones, the first in `turns`."""
    turn = {route_id: place for place, route_id in enumerate(room.turns)}
    serving = [route for route in deployment.routes if route.is_serving and not route.is_misplaced and route.id in turn]
    leaving = [route for route in serving if route.id in drained]
    first: list[UUID] = []
    for revision_id in dict.fromkeys(route.revision_id for route in leaving):
        count = sum(route.revision_id == revision_id for route in leaving)
        ranked = sorted((r for r in serving if r.revision_id == revision_id), key=lambda route: turn[route.id])
        first += ids(ranked[:count])
    return (*(route_id for route_id in drained if route_id not in ids(leaving)), *first)


def _put_to_sleep(changes: RouteChanges, deployment: Deployment, room: DeviceRoom, now: datetime) -> RouteChanges:
    """Park healthy replicas of old revisions in place of draining them, if they lend their devices then."""
    rollout = deployment.rollout
    goes_on = deployment.status.goes_forward and not deployment.stands_still and deployment.desired_replicas
    seconds = rollout.policy.spec.parked_seconds if rollout and goes_on else 0
    if not seconds:
        return changes
    able = [route for route in deployment.routes if route.is_serving and not route.is_misplaced]
    old = [r for r in able if r.revision_id in room.sleepers and r.revision_id != deployment.deploying_revision_id]
    parked = [route.id for route in old if route.id in changes.drain_route_ids]
    stays = tuple(route_id for route_id in changes.drain_route_ids if route_id not in parked)
    return replace(changes, drain_route_ids=stays) + RouteChanges.park(parked, now + timedelta(seconds=seconds))


def _falling_asleep(deployment: Deployment, room: DeviceRoom) -> tuple[Route, ...]:
    """Parked replicas that will lend their devices, since they are going to sleep or soon will."""
    parked = (r for r in deployment.active_routes if r.parked_until and r.revision_id in room.sleepers)
    return tuple(r for r in parked if not r.has_lent and r.status in (RouteStatus.HEALTHY, RouteStatus.PROVISIONING))


def _in_the_way(deployment: Deployment, dozing: Sequence[Route], now: datetime) -> Route | None:
    """A replica that serves nobody and holds devices: a parked one, else one that is sick for too long.

    A replica that is to sleep has the time for it that a sick one has to recover.
    """
    active = deployment.active_routes
    in_time = [route.id for route in dozing if route.status is RouteStatus.HEALTHY or grace_ends_at(route) > now]
    if in_time:
        return None
    parked = [route for route in active if route.parked_until is not None and not route.has_lent]
    return next(iter((*worst_first(parked), *worst_first(sick_too_long(active, now)))), None)
