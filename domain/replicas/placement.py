"""Places each new replica on a worker host: the one that is up and has the fewest of that deployment.

Equal ones: the one with the fewest of all, then the first by name, so that every worker would choose the same. Hosts
that lack a secret of its revision are passed over; where all do, one of them gets it, and says in vain what is missing.
"""

from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from domain.replicas.clocks import hosts_in_time

EXTERNAL = "external"
"""Stands where a host's name would, for replicas that another system runs. No host may be called so."""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A replica that has no host yet. `is_external`: it needs none. `lacking`: hosts without its secrets."""

    deployment_id: UUID
    is_external: bool
    lacking: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class PlacingGrounds:
    """The grounds to choose hosts by. `offsets`: how far the clock of each host that is up is off.

    `of_deployment` and `of_all`: as in `place`. `later`: how many replicas more must wait for another transaction.
    """

    unplaced: Sequence[Unplaced] = ()
    offsets: Mapping[str, float] = field(default_factory=dict)
    of_deployment: Mapping[tuple[UUID, str], int] = field(default_factory=dict)
    of_all: Mapping[str, int] = field(default_factory=dict)
    later: int = 0


def hosts_by(grounds: PlacingGrounds) -> list[str | None]:
    """A host for each replica, in their order; None where no host is up, and for those that must wait."""
    hosts = hosts_in_time(grounds.offsets)
    return [*place(grounds.unplaced, hosts, grounds.of_deployment, grounds.of_all), *[None] * grounds.later]


def place(
    unplaced: Iterable[Unplaced],
    hosts: Sequence[str],
    of_deployment: Mapping[tuple[UUID, str], int],
    of_all: Mapping[str, int],
) -> list[str | None]:
    """A host for each replica, in their order; without a host that is up, only external ones get theirs.

    `of_deployment`: live replicas by deployment and host, of the deployments in question; `of_all`: by host.
    """
    own: dict[UUID, Counter[str]] = defaultdict(Counter)
    for (deployment_id, name), count in of_deployment.items():
        own[deployment_id][name] = count
    ranked = sorted((of_all.get(name, 0), name) for name in hosts)
    chosen: list[str | None] = []
    for replica in unplaced:
        if replica.is_external or not hosts:
            chosen.append(EXTERNAL if replica.is_external else None)
            continue
        found = _fewest(ranked, replica.lacking, own[replica.deployment_id])
        count, host = found
        ranked.remove(found)
        insort(ranked, (count + 1, host))
        own[replica.deployment_id][host] += 1
        chosen.append(host)
    return chosen


def _fewest(ranked: Sequence[tuple[int, str]], lacking: Sequence[str], own: Mapping[str, int]) -> tuple[int, str]:
    """The host for one more, with how many it has of all. `ranked`: all hosts, those with the fewest first."""
    able = [found for found in ranked if found[1] not in lacking] if lacking else ranked
    without = (found for found in able if not own.get(found[1]))  # the first of these: no need to compare all
    return next(without, None) or min(able or ranked, key=lambda found: own.get(found[1], 0))
