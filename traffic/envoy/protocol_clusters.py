"""The clusters of a side of a deployment, one for each protocol of its replicas, and their shares.

A cluster of Envoy speaks one protocol. So a rollout to another one has two, each with its share of the requests:

    v1 v1 v1        web
    v1 v1 v2        web 2/3, web/http2 1/3
    v2 v2 v2        web/http2

No cluster ever speaks otherwise than at first: what is under way in one is told by it until the last of it has ended.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from domain.model.states import RouteStatus
from domain.text.numbers import WHOLE
from traffic.envoy.envoy_names import baseline_cluster, canary_cluster, mirror_cluster, on_wire, preview_cluster
from traffic.routing_table import Service, Upstream

Shares = list[tuple[str, int]]
"""The clusters by name, each with its share of requests."""


def side(service: Service, name: str) -> tuple[Upstream, ...]:
    """The replicas of the side of that name that take requests."""
    sides = {
        service.name: service.live,
        canary_cluster(service.name): service.canary,
        baseline_cluster(service.name): service.baseline,
        preview_cluster(service.name): service.preview,
        mirror_cluster(service.name): service.canary,
    }
    return sides[name] or ()


def wires_of(service: Service, upstreams: Iterable[Upstream]) -> list[str]:
    """The protocols of these replicas, the oldest one's first; without replicas, that of the next one."""
    return list(dict.fromkeys(upstream.wire for upstream in upstreams)) or [service.wire]


def shares_of(service: Service, name: str, of: int = WHOLE) -> Shares:
    """The clusters of a side, with shares of `of` by their healthy replicas; of all if none is healthy."""
    upstreams = side(service, name)
    wires = wires_of(service, upstreams)
    if len(wires) == 1:
        return [(on_wire(name, wires[0]), of)]
    counts = Counter[str]()
    for upstream in _first(service, upstreams):
        counts[upstream.wire] += upstream.weight
    usable = [wire for wire in wires if counts[wire]]
    parts = [of * counts[wire] // counts.total() for wire in usable]
    parts[0] += of - sum(parts)
    return [(on_wire(name, wire), part) for wire, part in zip(usable, parts, strict=True)]


def _first(service: Service, upstreams: Sequence[Upstream]) -> Sequence[Upstream]:
    """The replicas that get requests first: healthy ones, with a seat where callers stay."""
    healthy = [upstream for upstream in upstreams if upstream.status is RouteStatus.HEALTHY] or upstreams
    seated = [upstream for upstream in healthy if upstream.seat is not None] if service.rules.sticky else []
    return seated or healthy


def led_to(shares: Shares, *, by_hash: bool = False) -> dict[str, Any]:
    """Where a route leads. `by_hash`: a caller stays with a cluster for as long as its share allows."""
    if len(shares) == 1:
        return {"cluster": shares[0][0]}
    weighted: dict[str, Any] = {"clusters": [{"name": name, "weight": weight} for name, weight in shares]}
    return {"weighted_clusters": {**weighted, **({"use_hash_policy": True} if by_hash else {})}}
