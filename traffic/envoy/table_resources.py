"""The table as Envoy's resources: clusters and endpoints of each deployment, and one route configuration."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from traffic.envoy.clusters import assignment_of, cluster_of, clusters_of, is_left, shares_of
from traffic.envoy.envoy_names import ROUTE_CONFIGURATION, canary_cluster, preview_cluster
from traffic.envoy.listeners import listeners_of, secrets_of
from traffic.envoy.replica_routes import leading_to
from traffic.envoy.route_config import route_configuration
from traffic.resources import NO_RESOURCES, Named, Resource, ResourceKind, Resources, resource, together
from traffic.routing_table import Service, TrafficTable


def envoy_resources(table: TrafficTable, before: tuple[TrafficTable, Resources] | None = None) -> Resources:
    """All resources of Envoy. `before`: an older table, whose unchanged parts are kept."""
    old_table, old = before or (TrafficTable("", ()), NO_RESOURCES)
    if before is not None and old_table.services is table.services:
        return old
    was = {service.name: service for service in old_table.services}
    gone = was.keys() - {service.name for service in table.services}
    updated = [service for service in table.services if not _is_same(service, was.get(service.name))]
    if before is not None and not gone and not updated:
        return old
    obsolete = [*(was[name] for name in gone), *(was[service.name] for service in updated if service.name in was)]
    updated_clusters = {
        name: (service, upstreams) for service in updated for name, upstreams in clusters_of(service).items()
    }
    clusters = {
        name: replace(resource(cluster_of(name, service)), is_left=is_left(name, service))
        for name, (service, _) in updated_clusters.items()
    }
    endpoints = {
        name: assignment_of(name, upstreams, service) for name, (service, upstreams) in updated_clusters.items()
    }
    without = {name for service in obsolete for name in clusters_of(service)}
    return together(
        {
            ResourceKind.CLUSTERS: _patched(old.by_kind[ResourceKind.CLUSTERS], without, clusters),
            ResourceKind.ENDPOINTS: _patched(old.by_kind[ResourceKind.ENDPOINTS], without, endpoints),
            ResourceKind.ROUTES: _routes(table, old.by_kind[ResourceKind.ROUTES], was, updated, gone),
            **_tls_resources(table, old, was, updated, gone),
        }
    )


def _tls_resources(
    table: TrafficTable, old: Resources, was: Mapping[str, Service], updated: Iterable[Service], gone: Collection[str]
) -> dict[ResourceKind, Named]:
    """The listener for TLS and its certificates: made again where a deployment's TLS has changed."""
    listeners, secrets = (old.by_kind[kind] for kind in (ResourceKind.LISTENERS, ResourceKind.SECRETS))
    touched = [service for service in updated if _door(service) != _door(was.get(service.name))]
    obsolete = [was[name] for name in (*gone, *(service.name for service in touched)) if name in was]
    if table.door is not None and any(service.secured for service in (*obsolete, *touched)):
        names = {service.name for service in touched}
        services = [service for service in table.services if service.secured]
        listeners = listeners_of(services, table.door, listeners, names)
        without = {name for service in obsolete for name in secrets_of(service)}
        secrets = _patched(
            secrets, without, {name: secret for each in touched for name, secret in secrets_of(each).items()}
        )
    return {ResourceKind.LISTENERS: listeners, ResourceKind.SECRETS: secrets}


def _routes(
    table: TrafficTable, old: Named, was: Mapping[str, Service], updated: Iterable[Service], gone: Collection[str]
) -> Named:
    """The route configuration: only routes to deployments whose entrances have changed are made again."""
    others = {
        service.name for service in updated if service.name not in was or _way(service) != _way(was[service.name])
    }
    before = old.get(ROUTE_CONFIGURATION)
    if before is not None and not gone and not others:
        return old
    return {ROUTE_CONFIGURATION: route_configuration(table, before, others)}


def _is_same(service: Service, before: Service | None) -> bool:
    return service is before or service == before


def _patched(old: Named, without: Collection[str], added: dict[str, Resource]) -> Named:
    """The old resources with the changes; the same object where nothing changes."""
    if all(name in added for name in without) and all(old.get(name) == resource for name, resource in added.items()):
        return old
    return {name: resource for name, resource in old.items() if name not in without} | added


def _door(service: Service | None) -> tuple[object, ...]:
    """The part of a deployment in the listener for TLS and its certificates."""
    return (service.secured, service.hosts, service.preview_hosts, service.rules.tls) if service else ()


def _way(service: Service) -> tuple[object, ...]:
    """The part of a deployment in the route configuration: how it is reached, its clusters, whether it is held."""
    bare = replace(service, live=(), preview=(), canary=None, draining=(), baseline=None)
    sides = preview_cluster(service.name), canary_cluster(service.name)
    clusters = leading_to(service), [shares_of(service, name) for name in sides]
    return bare, bool(service.preview), service.is_held, clusters
