"""The ledger of devices: the devices of hosts, the replicas that hold them, the room for more, and the choice.

A replica holds its devices from its placement until its runtime says that it has gone, and `release_seconds` longer.
The room of a host for a revision that needs {gpu: 1, memory_gb: 40}:

    gpu 0 held, 1 held, 2 free, 3 free     2 devices
    memory_gb 240, 160 held                2 times 40     ->  min(2, 2) = 2

Whole devices are taken in their order, and those that a sleeping replica has lent come last. A half goes to a device
whose other half is taken, if there is one.

A replica that sleeps lends its devices: another replica may be placed on them, and holds them then. The sleeper wakes
when all its devices are free again:

    gpu 0 lent, held by another       waits until the other replica has gone, or sleeps too
    gpu 0 lent, free                  may wake
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

from domain.devices.needs import HALF, Capacity, Needs, in_words, is_amount
from domain.devices.others import others_in_words
from domain.devices.room import DeviceRoom
from domain.text.numbers import duration


class HeldDevice(NamedTuple):
    """A device, or a part of an amount, that a replica holds. `leaving_since`: when the replica was drained.

    `free_at`: once it has gone, when its devices are free. `route_id`: None if nobody needs to know the replica.
    """

    route_id: UUID | None
    host: str
    kind: str
    device: str
    amount: float
    leaving_since: datetime | None = None
    free_at: datetime | None = None


class Sleeper(NamedTuple):
    """A sleeping replica, and the devices that it has lent."""

    route_id: UUID
    host: str
    devices: Capacity


class Demand(NamedTuple):
    """The needs of a replica of a revision. `hosts`: those that may run it; None: all. `sleeps`: parked ones sleep."""

    needs: Needs
    hosts: Collection[str] | None = None
    sleeps: bool = False

    def among(self, hosts: Iterable[str]) -> list[str]:
        return [host for host in hosts if self.hosts is None or host in self.hosts]


@dataclass(frozen=True)
class Ledger:
    """The capacity of hosts, and the parts that replicas hold. `open_hosts`: the hosts that get new replicas.

    `others`: by host, the memory in use on devices by programs that are no replicas; no replica gets these devices.
    `sleepers`: replicas that sleep and have lent their devices.
    """

    capacity: Mapping[str, Capacity] = field(default_factory=dict)
    holdings: Sequence[HeldDevice] = ()
    open_hosts: Collection[str] = ()
    others: Mapping[str, Capacity] = field(default_factory=dict)
    sleepers: Sequence[Sleeper] = ()

    @cached_property
    def free(self) -> dict[str, dict[str, dict[str, float]]]:
        """The free capacity of each host that gets new replicas, by kind and device; lent devices come last."""
        remaining = {host: copy_of(self.capacity.get(host, {})) for host in self.open_hosts}
        for holding in self.holdings:
            devices = remaining.get(holding.host, {}).get(holding.kind, {})
            if holding.device in devices:
                devices[holding.device] -= holding.amount
        for host, memory in self.others.items():
            for kind, in_use in memory.items():
                remaining.get(host, {}).get(kind, {}).update(dict.fromkeys(in_use, 0.0))
        for sleeper in self.sleepers:
            for kind, lent in sleeper.devices.items():
                devices = remaining.get(sleeper.host, {}).get(kind, {})
                for device in lent:
                    if device in devices:
                        devices[device] = devices.pop(device)
        return remaining

    def lent_by(self, routes: Collection[UUID]) -> dict[UUID, bool]:
        """By sleeper among these routes, whether it may wake; those that may wake find their devices free together."""
        free, can_wake = {host: copy_of(devices) for host, devices in self.free.items()}, {}
        for sleeper in self.sleepers:
            if sleeper.route_id in routes:
                on_host = free.get(sleeper.host, {})
                can_wake[sleeper.route_id] = all(
                    on_host.get(kind, {}).get(device, 0) >= amount
                    for kind, devices in sleeper.devices.items()
                    for device, amount in devices.items()
                )
                if can_wake[sleeper.route_id]:
                    take(on_host, sleeper.devices)
        return can_wake

    def holders_of(self, lent: Collection[UUID]) -> set[UUID]:
        """The routes that hold devices which these sleepers have lent."""
        places = {
            (sleeper.host, kind, device)
            for sleeper in self.sleepers
            if sleeper.route_id in lent
            for kind, devices in sleeper.devices.items()
            if not is_amount(kind)
            for device in devices
        }
        return {
            holding.route_id
            for holding in self.holdings
            if holding.route_id and (holding.host, holding.kind, holding.device) in places
        }

    def room(self, demand: Demand) -> int:
        """The number of replicas with this demand that find their devices now."""
        return sum(fitting(self.free[host], demand.needs) for host in demand.among(self.open_hosts))

    def has_choice(self, demand: Demand, count: int) -> bool:
        """Whether at least `count` hosts have room for this demand."""
        return sum(fitting(self.free[host], demand.needs) > 0 for host in demand.among(self.open_hosts)) >= count

    def fits_ever(self, demand: Demand) -> int:
        """The number of replicas with this demand that all hosts could run if nothing else ran there."""
        return sum(fitting(self.capacity[host], demand.needs) for host in demand.among(self.capacity))

    def turns(self, demand: Demand, routes: Sequence[UUID]) -> list[UUID]:
        """The order in which these routes should leave, so that the fewest leave until a new replica has room.

        needs 2   host a: ■■ free 0    host b: ■ free 1    ->  the route of b, then those of a
        """
        of_host = self._by_host(routes)
        ranked = sorted(of_host, key=lambda host: (self._fewest_leaves(demand, host, of_host[host]), host))
        return [route_id for host in ranked for route_id in of_host[host]]

    def fewest_leaves(self, demand: Demand, routes: Iterable[UUID]) -> int | None:
        """The number of these routes that must leave before a new replica has room; None if all are too few."""
        least = min((self._fewest_leaves(demand, *pair) for pair in self._by_host(routes).items()), default=_NEVER)
        return None if least == _NEVER else least

    @cached_property
    def _by_route(self) -> dict[UUID, list[HeldDevice]]:
        devices: dict[UUID, list[HeldDevice]] = defaultdict(list)
        for device in self.holdings:
            if device.route_id:
                devices[device.route_id].append(device)
        return devices

    def _by_host(self, routes: Iterable[UUID]) -> dict[str, list[UUID]]:
        grouped: dict[str, list[UUID]] = defaultdict(list)
        for route_id in routes:
            if devices := self._by_route.get(route_id):
                grouped[devices[0].host].append(route_id)
        return grouped

    def _fewest_leaves(self, demand: Demand, host: str, routes: Sequence[UUID]) -> int:
        if host not in demand.among(self.open_hosts):
            return _NEVER
        free, needs = copy_of(self.free[host]), demand.needs
        now = fitting(free, needs)
        for count, route_id in enumerate(routes, 1):
            for holding in self._by_route[route_id]:
                if holding.device in free.get(holding.kind, {}):
                    free[holding.kind][holding.device] += holding.amount
            if fitting(free, needs) > now:
                return count
        return _NEVER

    def shortage(self, demand: Demand, now: datetime) -> str:
        """The clause of a wait: "a GPU: 8 of 8 in use, 1 is stopping on gpu-2 for 12 s"."""
        hosts, needs = demand.among(self.open_hosts), demand.needs
        kind = min(needs, key=lambda name: self.room(Demand({name: needs[name]}, demand.hosts)))
        total = sum(sum(self.capacity[host].get(kind, {}).values()) for host in hosts if host in self.capacity)
        holdings = [device for device in self.holdings if device.kind == kind and device.host in hosts]
        parts = [f"{in_words(kind, needs[kind])}: {sum(device.amount for device in holdings):g} of {total:g} in use"]
        leaving = {
            device.route_id: (device.leaving_since, device.host)
            for device in holdings
            if device.leaving_since and device.free_at is None
        }
        if leaving:
            since, host = min(leaving.values(), key=itemgetter(0))
            passed = duration(max(timedelta(), now - since))
            parts.append(f"{len(leaving)} {'is' if len(leaving) == 1 else 'are'} stopping on {host} for {passed}")
        if any(device.free_at for device in holdings):
            parts.append("another has just gone, and its driver frees it")
        others = [(host, {kind: self.others[host][kind]}) for host in hosts if kind in self.others.get(host, {})]
        sentences = [words for host, memory in others for words in others_in_words(host, memory)]
        parts += sentences[:_MOST_NAMED]
        if len(sentences) > _MOST_NAMED:
            parts.append(f"and {len(sentences) - _MOST_NAMED} more are used by no replica")
        return ", ".join(parts)

    @property
    def frees_at(self) -> datetime | None:
        """When the devices of the first replica that is gone are free."""
        return min((holding.free_at for holding in self.holdings if holding.free_at), default=None)


_NEVER = 1_000_000
_MOST_NAMED = 3


def copy_of(capacity: Capacity) -> dict[str, dict[str, float]]:
    return {kind: dict(devices) for kind, devices in capacity.items()}


def fitting(free: Capacity, needs: Needs) -> int:
    """The number of replicas with these needs that the free capacity of a host has room for."""
    return min((_fitting(free.get(kind, {}), kind, count) for kind, count in needs.items()), default=_NEVER)


def _fitting(free: Mapping[str, float], kind: str, count: float) -> int:
    if is_amount(kind):
        return int(free.get("", 0) // count)
    if count == HALF:
        return sum(int(amount // HALF) for amount in free.values())
    return sum(amount >= 1 for amount in free.values()) // int(count)


def choose(free: Capacity, needs: Needs) -> dict[str, dict[str, float]] | None:
    """The devices for one more replica, by kind, with amounts; None where they are not free.

    {"gpu": 1, "memory_gb": 40} -> {"gpu": {"2": 1}, "memory_gb": {"": 40}}
    """
    if fitting(free, needs) < 1:
        return None
    return {kind: _choose(free[kind], kind, count) for kind, count in needs.items()}


def _choose(free: Mapping[str, float], kind: str, count: float) -> dict[str, float]:
    if is_amount(kind):
        return {"": count}
    if count == HALF:
        device = min((name for name, amount in free.items() if amount >= HALF), key=lambda name: free[name] >= 1)
        return {device: HALF}
    whole = [name for name, amount in free.items() if amount >= 1]
    return dict.fromkeys(whole[: int(count)], 1.0)


def take(free: dict[str, dict[str, float]], devices: Capacity) -> None:
    """Take these devices from the free capacity of their host."""
    for kind, amounts in devices.items():
        for device, amount in amounts.items():
            free[kind][device] -= amount


def device_room(  # noqa: PLR0913  (all that it is made of)
    ledger: Ledger,
    demands: Mapping[UUID, Demand],
    desired: int,
    routes: Mapping[UUID, UUID],
    target: UUID | None,
    now: datetime,
) -> DeviceRoom:
    """The room of a deployment. `demands`: of its revisions that need devices; `desired`: its number of replicas.

    `routes`: its live replicas and their revisions. Those that are not of `target` may leave for replicas of `target`;
    first come the holders of devices that sleepers of `target` have lent.
    """
    free = {revision: ledger.room(each) for revision, each in demands.items()}
    turns: Sequence[UUID] = ()
    if target and free.get(target, desired) < desired:
        turns = ledger.turns(demands[target], [route_id for route_id, revision in routes.items() if revision != target])
        holders = ledger.holders_of([route_id for route_id, revision in routes.items() if revision == target])
        turns = sorted(turns, key=lambda route_id: route_id not in holders)
    return DeviceRoom(
        free,
        {revision: ledger.shortage(demands[revision], now) for revision, count in free.items() if count < desired},
        tuple(turns),
        ledger.frees_at,
        _lent(ledger, routes),
        tuple(revision for revision, demand in demands.items() if demand.sleeps),
    )


def _lent(ledger: Ledger, routes: Mapping[UUID, UUID]) -> dict[UUID, bool]:
    """The sleepers of each revision alone, since sleepers of two may have lent the same device one after the other."""
    lent: dict[UUID, bool] = {}
    for each in set(routes.values()) if ledger.sleepers else ():
        lent |= ledger.lent_by([route_id for route_id, revision in routes.items() if revision == each])
    return lent
