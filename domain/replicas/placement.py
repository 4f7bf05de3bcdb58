"""Which worker host gets a new replica: the one that is up and has the fewest of that deployment.

Equal ones: the one with the fewest of all, then the first by name, so that every worker would choose the same. Hosts
that lack a secret of its revision are passed over; where all do, one of them gets it, and says in vain what is missing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

EXTERNAL = "external"
"""Stands where a host's name would, for replicas that another system runs. No host may be called so."""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """A replica that has no host yet. `is_external`: it needs none. `lacking`: hosts without its secrets."""

    deployment_id: UUID
    is_external: bool
    lacking: Sequence[str] = ()


def place(
    unplaced: Iterable[Unplaced],
    hosts: Sequence[str],
    of_deployment: Mapping[tuple[UUID, str], int],
    of_all: Mapping[str, int],
) -> list[str | None]:
    """A host for each replica, in their order; without a host that is up, only external ones get theirs.

    `of_deployment`: live replicas by deployment and host, of the deployments in question; `of_all`: by host.
    """
    own, every = Counter(of_deployment), Counter(of_all)
    chosen: list[str | None] = []
    for replica in unplaced:
        if replica.is_external or not hosts:
            chosen.append(EXTERNAL if replica.is_external else None)
            continue
        able = [name for name in hosts if name not in replica.lacking]
        host = min(able or hosts, key=lambda name, of=replica.deployment_id: (own[of, name], every[name], name))  # type: ignore[misc]
        chosen.append(host)
        own[replica.deployment_id, host] += 1
        every[host] += 1
    return chosen
