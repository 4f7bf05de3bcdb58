"""Places each new replica on a worker host: the one that takes any and has the fewest of that deployment.

    the host is    down     drained: a person empties it      deaf: Redis, by which it is asked to start one, is silent
    gets new ones  never    while no other can run them       while no other is up, drained or not

One that is silent, since it gives no sign of life or is not asked for some seconds, gets them while no other can run
them but a drained one: soon it is down, deaf, or heard again.

Among the others, only hosts whose clock is near count (host_liveness.py). Of equal hosts the one with the fewest
replicas of all deployments takes it, then the first by name, so that every worker would choose the same. Hosts that
lack a secret of its revision are passed over; where all lack it, one of them gets the replica and reports the lack.
"""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from domain.replicas.host_liveness import hosts_in_time

EXTERNAL = "external"
"""Stands where a host's name would, for replicas that another system runs. No host may be called so."""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A replica that has no host yet. `is_external`: it needs none. `lacking`: hosts without its secrets."""

    deployment_id: UUID
    is_external: bool
    lacking: Sequence[str] = ()


class HostUp(NamedTuple):
    """A host that is up: by how many seconds its clock is ahead, whether it is deaf, drained by a person, or silent."""

    clock_offset: float
    is_deaf: bool = False
    is_drained: bool = False
    is_silent: bool = False


@dataclass(frozen=True, slots=True)
class PlacingGrounds:
    """The grounds to choose hosts by. `hosts`: those that are up, by name.

    `of_deployment` and `of_all`: as in `place`. `later`: how many replicas more must wait for another transaction.
    """

    unplaced: Sequence[Unplaced] = ()
    hosts: Mapping[str, HostUp] = field(default_factory=dict)
    of_deployment: Mapping[tuple[UUID, str], int] = field(default_factory=dict)
    of_all: Mapping[str, int] = field(default_factory=dict)
    later: int = 0


def takers(hosts: Mapping[str, HostUp]) -> list[str]:
    """The hosts that get new replicas, silent or not, by name; `hosts` has those that are up."""
    reachable = {name: host for name, host in hosts.items() if not host.is_deaf}
    open_ones = {name: host for name, host in reachable.items() if not host.is_drained}
    return hosts_in_time({name: host.clock_offset for name, host in (open_ones or reachable or hosts).items()})


def hosts_by(grounds: PlacingGrounds) -> list[str | None]:
    """A host for each replica, in their order; None where no host takes any, and for those that must wait."""
    reachable = {name: host for name, host in grounds.hosts.items() if not host.is_deaf}
    silent = sorted(name for name, host in reachable.items() if host.is_silent and not host.is_drained)
    drained = sorted(name for name, host in reachable.items() if host.is_drained)
    responsive = takers({name: host for name, host in reachable.items() if name not in (*silent, *drained)})
    hosts, spare = (responsive, [*silent, *drained]) if responsive else (takers(grounds.hosts), drained)
    return [*place(grounds.unplaced, hosts, grounds.of_deployment, grounds.of_all, spare), *[None] * grounds.later]


def place(
    unplaced: Iterable[Unplaced],
    hosts: Sequence[str],
    of_deployment: Mapping[tuple[UUID, str], int],
    of_all: Mapping[str, int],
    spare: Sequence[str] = (),
) -> list[str | None]:
    """A host for each replica, in their order; without a host that is up, only external ones get theirs.

    `of_deployment`: live replicas by deployment and host, of the deployments in question; `of_all`: by host. `spare`:
    the first of these with the secrets gets the replicas whose secrets none of `hosts` has.
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
        if only := _only_there(hosts, spare, replica.lacking):
            choices.append(only)
            continue
        choice = _fewest(ranked, replica.lacking, own[replica.deployment_id])
        count, host = choice
        ranked.remove(choice)
        insort(ranked, (count + 1, host))
        own[replica.deployment_id][host] += 1
        choices.append(host)
    return choices


def _only_there(hosts: Sequence[str], spare: Sequence[str], lacking: Sequence[str]) -> str | None:
    """The first spare host that has secrets which none of the hosts has; nearly always None."""
    if not spare or not lacking or not set(hosts) <= set(lacking):
        return None
    return next((name for name in spare if name not in lacking), None)


def _fewest(ranked: Sequence[tuple[int, str]], lacking: Sequence[str], own: Mapping[str, int]) -> tuple[int, str]:
    """The host for one more, with how many it has of all. `ranked`: all hosts, those with the fewest first."""
    able = [choice for choice in ranked if choice[1] not in lacking] if lacking else ranked
    without = (choice for choice in able if not own.get(choice[1]))  # the first of these: no need to compare all
    return next(without, None) or min(able or ranked, key=lambda choice: own.get(choice[1], 0))
