"""What is kept from one table to the next: nobody can tell it from a table that is made anew."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from domain.model.states import RouteStatus, TrafficStatus
from domain.traffic.snapshot import Canary, DeploymentInTraffic, Entrance, RequestRules, RouteInTraffic
from domain.traffic.tls import TlsSettings
from domain.traffic.tls_material import Secured, ShownCertificate
from tests.support.pictures.traffic_samples import coming, deployment, hosts, prefixes, route, snapshot
from traffic.envoy.table_resources import envoy_resources
from traffic.resources import ResourceKind
from traffic.routing_table import TlsDoor, derive_table

NEW = coming(3, traffic=TrafficStatus.ACTIVE, is_current=False)
_ROUTES = (
    (),
    (route(1), route(2)),
    (route(1), replace(route(2), status=RouteStatus.TERMINATING, traffic=TrafficStatus.INACTIVE)),
    (route(1), coming(3)),
    (route(1), NEW),
    (route(1, "host-7:80"),),
)
_ENTRANCES = (None, hosts("shop"), (*hosts("shop", "a b"), *prefixes("/shop/")), hosts("preview.web"))
_CANARIES = (None, Canary(), Canary(0), Canary(500))
_SECURED = (None, Secured(), *(Secured(certificates=(ShownCertificate(key, ("shop",), "c", key),)) for key in "ab"))
DOOR = TlsDoor("127.0.0.1", 8443, 443)


def built(
    name: str,
    routes: tuple[RouteInTraffic, ...],
    entrances: tuple[Entrance, ...] | None,
    canary: Canary | None,
    secured: Secured | None,
) -> DeploymentInTraffic:
    rules = RequestRules(tls=None if secured is None else TlsSettings())
    return replace(deployment(*routes, name=name, entrances=entrances), canary=canary, secured=secured, rules=rules)


DEPLOYMENTS = st.builds(
    built,
    st.sampled_from(["web", "api", "shop"]),
    st.sampled_from(_ROUTES),
    st.sampled_from(_ENTRANCES),
    st.sampled_from(_CANARIES),
    st.sampled_from(_SECURED),
)
FLEETS = st.lists(st.lists(DEPLOYMENTS, max_size=3, unique_by=lambda each: each.name), min_size=2, max_size=5)


def in_order(fleet: Iterable[DeploymentInTraffic]) -> list[DeploymentInTraffic]:
    return sorted(fleet, key=lambda each: each.name)


@given(FLEETS)
def test_tables_one_after_the_other_are_those_that_are_made_anew(fleets: list[list[DeploymentInTraffic]]) -> None:
    seen = snapshot()
    table = derive_table(seen, door=DOOR)
    resources = envoy_resources(table)
    for number, fleet in enumerate(fleets):
        now = snapshot(*in_order(fleet), seen=f"{number}:{number}:")
        next_table = derive_table(now, (seen, table), DOOR)
        resources = envoy_resources(next_table, (table, resources))
        seen, table = now, next_table
        assert table == derive_table(now, door=DOOR)
        assert resources == envoy_resources(derive_table(now, door=DOOR))


def test_of_a_thousand_deployments_only_what_changed_is_made_again() -> None:
    fleet = [deployment(route(number), name=f"web{number}") for number in range(1000)]
    before = snapshot(*fleet)
    table = derive_table(before)
    resources = envoy_resources(table)
    fleet[7] = deployment(route(7), route(1007), name="web7")
    after = snapshot(*fleet, seen="2:2:")
    next_table = derive_table(after, (before, table))
    pairs = zip(next_table.services, table.services, strict=True)
    assert [service.name for service, was in pairs if service is not was] == ["web7"]
    told = envoy_resources(next_table, (table, resources))
    assert told.by_kind[ResourceKind.CLUSTERS] is resources.by_kind[ResourceKind.CLUSTERS]
    assert told.by_kind[ResourceKind.ROUTES] is resources.by_kind[ResourceKind.ROUTES]
    endpoints, were = told.by_kind[ResourceKind.ENDPOINTS], resources.by_kind[ResourceKind.ENDPOINTS]
    assert [name for name in endpoints if endpoints[name] is not were[name]] == ["web7"]


def test_a_weight_makes_again_the_routes_to_its_deployment_alone() -> None:
    fleet = [deployment(route(number), name=f"web{number}") for number in range(100)]
    fleet[7] = replace(deployment(route(7), NEW, name="web7"), canary=Canary(0))
    before = snapshot(*fleet)
    table = derive_table(before)
    resources = envoy_resources(table)
    fleet[7] = replace(fleet[7], canary=Canary(500))
    after = snapshot(*fleet)
    told = envoy_resources(derive_table(after, (before, table)), (table, resources))
    (routes,), (were,) = (of.by_kind[ResourceKind.ROUTES].values() for of in (told, resources))
    assert [name for name, found in routes.entries.items() if found != were.entries[name]] == ["web7", "*"]
    by_prefix, was = routes.entries["*"][0].entries, were.entries["*"][0].entries
    assert [name for name, found in by_prefix.items() if found is not was[name]] == ["/web7/", ""]
    assert routes.version != were.version
