"""The table as Envoy's resources: clusters and endpoints of each deployment, and one route configuration."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from traffic.envoy.clusters import cluster_of, clusters_of, load_assignment, stand_ins_of
from traffic.envoy.names import ROUTE_CONFIGURATION
from traffic.envoy.routes import route_configuration
from traffic.resources import NO_RESOURCES, Named, Resource, ResourceKind, Resources, resource, together
from traffic.table import Service, TrafficTable


def envoy_resources(table: TrafficTable, before: tuple[TrafficTable, Resources] | None = None) -> Resources:
    """Everything that Envoy is told. `before`: an older table, whose unchanged parts are kept."""
    old, kept = before or (TrafficTable("", ()), NO_RESOURCES)
    if before is not None and old.services is table.services:
        return kept
    was = {service.name: service for service in old.services}
    gone = was.keys() - {service.name for service in table.services}
    changed = [service for service in table.services if not _is_same(service, was.get(service.name))]
    if before is not None and not gone and not changed:
        return kept
    left = [*(was[name] for name in gone), *(was[service.name] for service in changed if service.name in was)]
    made = {name: (service, upstreams) for service in changed for name, upstreams in clusters_of(service).items()}
    clusters = {name: resource(cluster_of(name, service)) for name, (service, _) in made.items()}
    endpoints = {
        name: resource(load_assignment(name, upstreams, stand_ins_of(name, service)))
        for name, (service, upstreams) in made.items()
    }
    without = {name for service in left for name in clusters_of(service)}
    return together(
        {
            ResourceKind.CLUSTERS: _patched(kept.by_kind[ResourceKind.CLUSTERS], without, clusters),
            ResourceKind.ENDPOINTS: _patched(kept.by_kind[ResourceKind.ENDPOINTS], without, endpoints),
            ResourceKind.ROUTES: _routes(table, kept.by_kind[ResourceKind.ROUTES], was, changed, gone),
        }
    )


def _routes(
    table: TrafficTable, kept: Named, was: Mapping[str, Service], changed: Iterable[Service], gone: Collection[str]
) -> Named:
    """The route configuration: only routes to deployments that are reached in another way are made again."""
    others = {
        service.name for service in changed if service.name not in was or _way(service) != _way(was[service.name])
    }
    before = kept.get(ROUTE_CONFIGURATION)
    if before is not None and not gone and not others:
        return kept
    return {ROUTE_CONFIGURATION: route_configuration(table, before, others)}


def _is_same(service: Service, before: Service | None) -> bool:
    return service is before or service == before


def _patched(kept: Named, without: Collection[str], made: dict[str, Resource]) -> Named:
    """The clusters that are kept and those that were made; the same object where that is no change."""
    if all(name in made for name in without) and all(kept.get(name) == found for name, found in made.items()):
        return kept
    return {name: found for name, found in kept.items() if name not in without} | made


def _way(service: Service) -> tuple[Service, bool]:
    """Return what the route configuration says of it: how a deployment is reached, and whether it has a preview."""
    return replace(service, live=(), preview=(), canary=None, draining=(), baseline=None), bool(service.preview)
