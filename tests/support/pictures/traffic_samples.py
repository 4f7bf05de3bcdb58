"""Snapshots to derive tables from."""

from typing import Any
from uuid import UUID

from domain.model.states import RouteStatus, TrafficStatus
from domain.traffic.snapshot import (
    DeploymentInTraffic,
    Entrance,
    EntranceKind,
    RequestRules,
    RouteInTraffic,
    TrafficSnapshot,
)
from traffic.resources import Resource


def route(number: int = 1, address: str | None = None, **settings: Any) -> RouteInTraffic:
    """Healthy, in traffic, at a port of its own."""
    given = {
        "revision": "v1",
        "revision_id": UUID(int=1),
        "status": RouteStatus.HEALTHY,
        "traffic": TrafficStatus.ACTIVE,
        "ratio": 1.0,
        "is_candidate": False,
        "is_parked": False,
    }
    return RouteInTraffic(id=UUID(int=number), address=address or f"10.0.0.1:{8000 + number}", **{**given, **settings})


def coming(number: int, **settings: Any) -> RouteInTraffic:
    """Healthy, of the revision that is rolled out, not in traffic."""
    given = {"revision": "v2", "revision_id": UUID(int=2), "traffic": TrafficStatus.INACTIVE, "is_candidate": True}
    return route(number, **{**given, **settings})


def hosts(*values: str) -> tuple[Entrance, ...]:
    return tuple(Entrance(EntranceKind.HOST, value) for value in values)


def prefixes(*values: str, strip: bool = True) -> tuple[Entrance, ...]:
    return tuple(Entrance(EntranceKind.PREFIX, value, strip) for value in values)


def deployment(
    *routes: RouteInTraffic,
    name: str = "web",
    entrances: tuple[Entrance, ...] | None = None,
    timeout: float | None = None,
) -> DeploymentInTraffic:
    """Reached by its name, unless it is said otherwise."""
    if entrances is None:
        entrances = (*hosts(name), *prefixes(f"/{name}/"))
    return DeploymentInTraffic(name, entrances, RequestRules(timeout), routes)


def snapshot(*deployments: DeploymentInTraffic, seen: str = "1:1:") -> TrafficSnapshot:
    return TrafficSnapshot(seen, deployments)


def whole(found: Resource) -> dict[str, Any]:
    """All that it says, with its entries."""
    entries = [whole(entry) for group in found.entries.values() for entry in group]
    return {**found.content, **({found.list_field: entries} if found.list_field else {})}
