"""Derives the table from a snapshot of what Postgres says; what has not changed is kept."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from ipaddress import ip_address

from domain.model.states import RouteStatus
from domain.traffic.capacity import is_preview, sides, with_a_share
from domain.traffic.snapshot import Canary, DeploymentInTraffic, RouteInTraffic, TrafficSnapshot
from traffic.entrance_map import Ways, ways_to
from traffic.routing_table import Service, TlsDoor, TrafficTable, Upstream

_LEAST_WEIGHT, _MOST_WEIGHT = 1, 100


def derive_table(
    snapshot: TrafficSnapshot,
    before: tuple[TrafficSnapshot, TrafficTable] | None = None,
    door: TlsDoor | None = None,
) -> TrafficTable:
    """The table of a snapshot. `before`: an older one and its table, whose unchanged services are kept."""
    if before is not None and not before[1].faults and not snapshot.faults and _is_reached_alike(snapshot, before[0]):
        return _with_other_replicas(snapshot, *before)
    faults = list(snapshot.faults)
    ways = ways_to(snapshot.deployments, faults)
    services = tuple(_service(*pair, faults) for pair in zip(snapshot.deployments, ways, strict=True))
    return TrafficTable(snapshot.seen, services, tuple(dict.fromkeys(faults)), door)


def _is_reached_alike(snapshot: TrafficSnapshot, before: TrafficSnapshot) -> bool:
    """Whether both have the same deployments, by the same host names and paths."""
    return len(snapshot.deployments) == len(before.deployments) and all(
        new is old or (new.name == old.name and new.entrances == old.entrances)
        for new, old in zip(snapshot.deployments, before.deployments, strict=True)
    )


def _with_other_replicas(snapshot: TrafficSnapshot, old: TrafficSnapshot, table: TrafficTable) -> TrafficTable:
    """Renew only the replicas: who is reached by which name is as it was, and nothing was left out."""
    if snapshot.deployments is old.deployments:
        return replace(table, seen=snapshot.seen)
    faults: list[str] = []
    services = tuple(
        service
        if deployment is was or deployment == was
        else _service(deployment, Ways(service.hosts, service.preview_hosts, service.prefixes), faults)
        for deployment, was, service in zip(snapshot.deployments, old.deployments, table.services, strict=True)
    )
    return TrafficTable(snapshot.seen, services, tuple(dict.fromkeys(faults)), table.door)


def _service(deployment: DeploymentInTraffic, ways: Ways, faults: list[str]) -> Service:
    live, canary, baseline, weight, beside_weight = sides(deployment)
    preview = [route for route in deployment.routes if deployment.rules.preview and is_preview(route)]
    leaving = [route for route in deployment.routes if route.status is RouteStatus.TERMINATING]
    upstreams, share, beside, previewed, draining = (
        tuple(_upstreams(deployment.name, routes, faults)) for routes in (live, canary, baseline, preview, leaving)
    )
    share, beside = share if canary else upstreams, beside if baseline else upstreams
    taken = {(upstream.ip, upstream.port) for upstream in (*upstreams, *share, *beside, *previewed)}
    given = deployment.canary or Canary()
    return Service(
        name=deployment.name,
        hosts=ways.hosts,
        preview_hosts=ways.preview_hosts,
        prefixes=ways.prefixes,
        rules=deployment.rules,
        live=upstreams,
        preview=previewed,
        canary=share if deployment.canary else None,
        weight=weight,
        sticky=given.sticky,
        mirrored=given.mirrored if canary else 0,
        # where a new replica has the address of one that is gone, that one is asked nothing any more
        draining=tuple(upstream for upstream in draining if (upstream.ip, upstream.port) not in taken),
        baseline=beside if given.baseline is not None else None,
        baseline_weight=beside_weight,
        secured=deployment.secured,
        maintenance=deployment.maintenance,
        chosen=given.chosen if canary and weight else None,
        wire=deployment.wire,
        wires=deployment.wires,
    )


def _upstreams(deployment: str, routes: list[RouteInTraffic], faults: list[str]) -> Iterator[Upstream]:
    for route in with_a_share(routes):
        try:
            ip, port = read_address(route.address)
        except ValueError:
            faults.append(
                f"{deployment}: replica {route.id} is at {route.address!r}, which is not ip:port, so it is left out"
            )
            continue
        weight = max(_LEAST_WEIGHT, min(_MOST_WEIGHT, round(route.ratio * _MOST_WEIGHT)))
        who = (route.id, route.revision, route.revision_id)
        yield Upstream(*who, ip, port, route.status, weight, route.seat, route.wire)


@lru_cache(maxsize=65_536)
def read_address(address: str) -> tuple[str, int]:
    """The IP address and port of "10.0.0.1:80" or "[::1]:80". Raises ValueError for anything else, names included."""
    host, _, port = address.rpartition(":")
    number = int(port) if port.isascii() and port.isdigit() else 0
    if not 0 < number < 65536:  # noqa: PLR2004  (the ports there are)
        raise ValueError(address)
    return str(ip_address(host.removeprefix("[").removesuffix("]"))), number
