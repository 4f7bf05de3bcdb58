"""Worker hosts: which of them are silent, have a wrong clock or lack parts, and which gets a new replica.

Liveness comes from looks at heartbeats. Looks are counted, not seconds: while nobody looked, nobody could be heard.

    looks in a row without a fresh sign     0 1 2 3       4 5 6 7     8 ...       (15 s of silence are 8 looks)
    its running routes                      as they are   degraded    failed: the host is down

    clock off by at least    1 s or less     more than 1 s     more than 60 s
    the host                 is as usual     is warned of      gets no new replicas while another is nearer

Nothing of Rollway is decided by a host's clock. But replicas on a host read it: a minute is what programs that check
certificates and signed tokens usually forgive. Where all hosts are that far off, the database's clock may be the one
that is wrong, so that they get replicas as usual.

Choice: of the hosts that take new replicas, the one with the fewest of that deployment gets the new replica.

    the host is    down     drained: a person empties it      deaf: Redis, by which it is asked to start one, is silent
    gets new ones  never    while no other can run them       while no other is up, drained or not

A silent host, which gives no sign of life or is not asked for some seconds, gets them while only drained hosts could
run them otherwise: soon it is down, deaf, or no longer silent.

Among the others, only hosts whose clock is near count. Of equal hosts the one with the fewest
replicas of all deployments takes it, then the first by name, so that every worker would choose the same. Hosts that
lack a secret of its revision are passed over; where all lack it, one of them gets the replica and reports the lack.

Labels that a revision requires of its hosts are never given up: its replicas run only on hosts that have them, and the
rules above choose among these hosts. Where none of them is up, a replica waits without a host. The same holds for the
devices that a replica needs: only hosts where they are free count.

    spread       the host that is chosen has the fewest replicas of the deployment
    host         itself
    a label      with all hosts of its value of the label, then itself; hosts without the label count as one value
"""

import re
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from domain.devices.ledger import Ledger, choose, copy_of, fitting, take
from domain.devices.needs import Capacity, Needs
from domain.model.lifecycle_events import ROUTE_CADENCES, RouteLifecycleType
from domain.revisions.host_labels import HOST, Labels, has_labels, value_of
from domain.text.errors import RollwayError, WrongStateError

SIGN_OF_LIFE_SECONDS = 1.0
"""The interval of a host's heartbeats."""
FRESH_SECONDS = 2.5 * SIGN_OF_LIFE_SECONDS
"""A look finds a host silent whose last sign is older."""
MISSED_AFTER = timedelta(seconds=5)
"""The silence after which people are warned about workers, or the server for proxies."""
BEAT_MISSED_AFTER = timedelta(seconds=15)
"""The silence of beat after which people are warned: its ticks wait for a free worker."""


BACK_FOR = timedelta(seconds=10)
"""For this time after a host is back, and looked at, replicas may be found that ended while it was away."""


class HostNotFoundError(RollwayError):
    """No worker host has that name."""


def looks_until_down(seconds: float) -> int:
    """Silent looks in a row after which a host is down: those that fit into `seconds` of silence, one at least."""
    return max(1, round(seconds / ROUTE_CADENCES[RouteLifecycleType.HOSTS]))


def looks_until_degraded(seconds: float) -> int:
    """Silent looks in a row after which a host's running routes are degraded: half of the others, rounded up."""
    return (looks_until_down(seconds) + 1) // 2


def is_lost(started_at: datetime, back_at: datetime | None, now: datetime, looked_at: datetime | None = None) -> bool:
    """Whether a replica ended because of its host: it was started before all workers there were away.

    A machine that was switched off or restarted ends what ran on it; so does a container with its worker, and an
    engine with its containers. `looked_at`: the first look since it is back; beat may be back much later than a worker.
    """
    return back_at is not None and started_at < back_at <= now <= max(back_at, looked_at or back_at) + BACK_FOR


def refuse_to_forget(host: str, down_since: datetime | None) -> None:
    """Only a host that is down may be forgotten. Raises WrongStateError for one that is up."""
    if down_since is None:
        raise WrongStateError(f"host {host} is up; only a host that is down can be forgotten", host=host)


_WARNED_ABOVE_SECONDS = 1.0
_TOO_FAR_ABOVE_SECONDS = 60.0


def clock_offset(before: float, after: float, theirs: float) -> float:
    """By how many seconds a clock is ahead of another at least; less than 0 for one that is behind.

    `theirs` was read between `before` and `after`, which its own clock says. A slow answer makes no clock wrong: within
    the round trip it counts as right.
    """
    if theirs < before:
        return before - theirs
    return min(0.0, after - theirs)


def is_warned_of(seconds: float) -> bool:
    """Whether this offset or jump of a clock deserves a warning."""
    return abs(seconds) > _WARNED_ABOVE_SECONDS


def is_too_far(seconds: float) -> bool:
    """Whether this offset keeps new replicas from a host while another clock is nearer."""
    return abs(seconds) > _TOO_FAR_ABOVE_SECONDS


def seconds_set_back(showed: float, passed: float, shows: float) -> float:
    """By how many seconds a clock was set back, which showed and now shows these times, `passed` seconds apart."""
    return max(0.0, showed + passed - shows)


def seconds_set_forward(showed: float, passed: float, shows: float) -> float:
    """By how many seconds a clock was set forward at least, as `seconds_set_back` says it of one that was set back."""
    return max(0.0, shows - showed - passed)


def hosts_in_time(offsets: Mapping[str, float]) -> list[str]:
    """The hosts of these that may get new replicas, by name."""
    near = [host for host, offset in offsets.items() if not is_too_far(offset)]
    return sorted(near or offsets)


EXTERNAL = "external"
"""Stands where a host's name would, for replicas that another system runs. No host may be called so."""
RIGHT_HOST_NAME = f"letters, digits, '-', '_' and '.', 63 at most, and not {EXTERNAL!r}"
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def host_name(text: str) -> str:
    """The name of a host, unchanged. Raises ValueError for what no host may be called."""
    if not _HOST_NAME.fullmatch(text) or text == EXTERNAL:
        raise ValueError(f"must be {RIGHT_HOST_NAME}, which {text!r} is not")
    return text


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A replica that has no host yet. `is_external`: it needs none. `lacking`: hosts without its secrets.

    `labels`: those that its host must have. `spread`: the label over whose values it is spread. `needs`: its devices.
    """

    deployment_id: UUID
    is_external: bool
    lacking: Sequence[str] = ()
    labels: Labels | None = None
    spread: str = HOST
    needs: Needs | None = None


class HostUp(NamedTuple):
    """A host that is up: by how many seconds its clock is ahead, whether it is deaf, drained by a person, or silent.

    `labels`: its own; None: it has none.
    """

    clock_offset: float
    is_deaf: bool = False
    is_drained: bool = False
    is_silent: bool = False
    labels: Labels | None = None


_NO_DEVICES = Ledger()


@dataclass(frozen=True, slots=True)
class PlacingGrounds:
    """The grounds to choose hosts by. `hosts`: those that are up, by name.

    `of_deployment` and `of_all`: as in `place`. `later`: the number of replicas that must wait for another transaction.
    `ledger`: the holders of devices, if a replica needs some.
    """

    unplaced: Sequence[Unplaced] = ()
    hosts: Mapping[str, HostUp] = field(default_factory=dict)
    of_deployment: Mapping[tuple[UUID, str], int] = field(default_factory=dict)
    of_all: Mapping[str, int] = field(default_factory=dict)
    later: int = 0
    ledger: Ledger = _NO_DEVICES


class Placement(NamedTuple):
    """The host of a new replica, None where no host takes it now; and its devices, None where it needs none.

    `is_put_off`: no host has the devices free, so it is not created now.
    """

    host: str | None
    devices: Capacity | None = None
    is_put_off: bool = False


def takers(hosts: Mapping[str, HostUp]) -> list[str]:
    """The hosts that get new replicas, silent or not, by name; `hosts` has those that are up."""
    reachable = {name: host for name, host in hosts.items() if not host.is_deaf}
    open_ones = {name: host for name, host in reachable.items() if not host.is_drained}
    return hosts_in_time({name: host.clock_offset for name, host in (open_ones or reachable or hosts).items()})


def in_turn_for_devices(grounds: PlacingGrounds, most: int) -> list[str]:
    """The first hosts in the order in which replicas that need devices get them; empty if these differ in their rules.

    If at least as many of these hosts have room as there are replicas, the devices of other hosts need not be read.
    """
    needy = [replica for replica in grounds.unplaced if replica.needs]
    owner, labels = needy[0].deployment_id, needy[0].labels
    for replica in needy:
        if (replica.deployment_id, replica.labels, replica.spread) != (owner, labels, HOST) or replica.lacking:
            return []
    hosts, _ = _takers_and_spare(_with_labels(grounds.hosts, labels or {}))
    own = {host: count for (deployment_id, host), count in grounds.of_deployment.items() if deployment_id == owner}
    return [host for *_, host in sorted((own.get(host, 0), grounds.of_all.get(host, 0), host) for host in hosts)[:most]]


def placements(grounds: PlacingGrounds) -> list[Placement]:
    """The host of each replica, and its devices."""
    hosts = hosts_by(grounds)
    if grounds.ledger is _NO_DEVICES:
        return [Placement(host) for host in hosts]
    free, placements_so_far = _free(grounds), []
    for replica, host in zip(grounds.unplaced, hosts, strict=False):
        devices = choose(free[host], replica.needs) if host and replica.needs else None
        if host and devices:
            take(free[host], devices)
        placements_so_far.append(Placement(host, devices, is_put_off=bool(replica.needs) and devices is None))
    return [*placements_so_far, *[Placement(None)] * grounds.later]


def _free(grounds: PlacingGrounds) -> dict[str, dict[str, dict[str, float]]]:
    if grounds.ledger is _NO_DEVICES:
        return {}
    return {host: copy_of(devices) for host, devices in grounds.ledger.free.items()}


def hosts_by(grounds: PlacingGrounds) -> list[str | None]:
    """A host for each replica, in their order; None where no host takes any, and for those that must wait."""
    groups: dict[frozenset[tuple[str, str]], list[int]] = defaultdict(list)
    for number, replica in enumerate(grounds.unplaced):
        groups[frozenset((replica.labels or {}).items())].append(number)
    choices: list[str | None] = [None] * (len(grounds.unplaced) + grounds.later)
    of_deployment, of_all, free = grounds.of_deployment, grounds.of_all, _free(grounds)
    for required, numbers in groups.items():
        group = [grounds.unplaced[number] for number in numbers]
        hosts, spare = _takers_and_spare(_with_labels(grounds.hosts, dict(required)))
        hosts_of_group = place(group, hosts, of_deployment, of_all, spare, grounds.hosts, free)
        for number, host in zip(numbers, hosts_of_group, strict=True):
            choices[number] = host
        if len(groups) > 1:
            of_all = Counter(of_all) + Counter(host for host in hosts_of_group if host)
            pairs = ((replica.deployment_id, host) for replica, host in zip(group, hosts_of_group, strict=True) if host)
            of_deployment = Counter(of_deployment) + Counter(pairs)
    return choices


def _with_labels(hosts: Mapping[str, HostUp], required: Labels) -> Mapping[str, HostUp]:
    if not required:
        return hosts
    return {name: host for name, host in hosts.items() if has_labels(required, name, host.labels or {})}


def _takers_and_spare(hosts: Mapping[str, HostUp]) -> tuple[list[str], list[str]]:
    reachable = {name: host for name, host in hosts.items() if not host.is_deaf}
    silent = sorted(name for name, host in reachable.items() if host.is_silent and not host.is_drained)
    drained = sorted(name for name, host in reachable.items() if host.is_drained)
    last = {*silent, *drained}
    responsive = takers({name: host for name, host in reachable.items() if name not in last})
    return (responsive, [*silent, *drained]) if responsive else (takers(hosts), drained)


def place(  # noqa: PLR0913  (all that a choice is made by)
    unplaced: Iterable[Unplaced],
    hosts: Sequence[str],
    of_deployment: Mapping[tuple[UUID, str], int],
    of_all: Mapping[str, int],
    spare: Sequence[str] = (),
    up: Mapping[str, HostUp] = MappingProxyType({}),
    free: Mapping[str, dict[str, dict[str, float]]] = MappingProxyType({}),
) -> list[str | None]:
    """A host for each replica, in their order; without a host that is up, only external ones get theirs.

    `of_deployment`: live replicas by deployment and host, of the deployments in question; `of_all`: by host. `spare`:
    the first of these with the secrets gets the replicas whose secrets none of `hosts` has. `up`: the hosts that are
    up, by whose labels replicas may be spread. `free`: the free devices of each host, less those that this takes.
    """
    own: dict[UUID, Counter[str]] = defaultdict(Counter)
    for (deployment_id, name), count in of_deployment.items():
        own[deployment_id][name] = count
    ranked = sorted((of_all.get(name, 0), name) for name in hosts)
    choices: list[str | None] = []
    for replica in unplaced:
        if replica.is_external or not hosts:
            choices.append(EXTERNAL if replica.is_external else None)
            continue
        if not replica.needs and (only := _only_there(hosts, spare, replica.lacking)):
            choices.append(only)
            continue
        open_ones = ranked
        if replica.needs:
            open_ones = [each for each in ranked if each[1] in free and fitting(free[each[1]], replica.needs)]
            if not open_ones:
                choices.append(None)
                continue
        able = [each for each in open_ones if each[1] not in replica.lacking] if replica.lacking else open_ones
        counts = own[replica.deployment_id]
        values = {} if replica.spread == HOST else _values_of(replica.spread, up)
        choice = _evenly(able or open_ones, counts, values) if values else _fewest(able or open_ones, counts)
        count, host = choice
        ranked.remove(choice)
        insort(ranked, (count + 1, host))
        counts[host] += 1
        if replica.needs and (devices := choose(free[host], replica.needs)):
            take(free[host], devices)
        choices.append(host)
    return choices


def _only_there(hosts: Sequence[str], spare: Sequence[str], lacking: Sequence[str]) -> str | None:
    """The first spare host that has secrets which none of the hosts has; nearly always None."""
    if not spare or not lacking or not set(hosts) <= set(lacking):
        return None
    return next((name for name in spare if name not in lacking), None)


def _fewest(able: Sequence[tuple[int, str]], own: Mapping[str, int]) -> tuple[int, str]:
    """The host for one more, with how many it has of all. `able`: the hosts, those with the fewest of all first."""
    without = (choice for choice in able if not own.get(choice[1]))  # the first of these: no need to compare all
    return next(without, None) or min(able, key=lambda choice: own.get(choice[1], 0))


def _values_of(label: str, hosts: Mapping[str, HostUp]) -> Mapping[str, str | None]:
    return {name: value_of(label, name, host.labels or {}) for name, host in hosts.items()}


def _evenly(
    able: Sequence[tuple[int, str]], own: Mapping[str, int], values: Mapping[str, str | None]
) -> tuple[int, str]:
    """As `_fewest`, but first by how many there are on all hosts with the same value of a label."""
    together: Counter[str | None] = Counter()
    for host, count in own.items():
        if host in values:
            together[values[host]] += count
    return min(able, key=lambda choice: (together[values.get(choice[1])], own.get(choice[1], 0)))
