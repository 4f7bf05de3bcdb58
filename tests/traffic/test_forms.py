"""The table as Envoy, Traefik and Prometheus read it."""

from dataclasses import replace
from typing import Any

import yaml

from domain.model.states import RouteStatus
from domain.traffic.snapshot import RequestRules
from domain.traffic.tls import TlsSettings
from tests.support.pictures.traffic_samples import coming, deployment, hosts, prefixes, route, snapshot, whole
from traffic.envoy.bootstrap import envoy_bootstrap
from traffic.envoy.table_resources import envoy_resources
from traffic.prometheus import prometheus_targets
from traffic.resources import ResourceKind
from traffic.routing_table import TrafficTable, derive_table
from traffic.traefik import traefik_document

CLUSTERS, ENDPOINTS, ROUTES, *_ = ResourceKind


def table(*deployments: Any, seen: str = "1:1:") -> TrafficTable:
    return derive_table(snapshot(*deployments, seen=seen))


def test_only_what_changed_has_another_version() -> None:
    before = table(deployment(route(1)), deployment(route(2), name="other"))
    after = table(deployment(route(1), route(3)), deployment(route(2), name="other"))
    first = envoy_resources(before)
    second = envoy_resources(after, (before, first))
    changed = {
        (kind, name)
        for kind, named in second.by_kind.items()
        for name, resource in named.items()
        if first.by_kind[kind][name].version != resource.version
    }
    assert changed == {(ENDPOINTS, "web")}
    assert second.by_kind[CLUSTERS] is first.by_kind[CLUSTERS]
    assert first.version != second.version


def test_two_servers_agree_on_versions_whatever_they_knew_before() -> None:
    tables = [table(deployment(route(1))), table(deployment(route(1), coming(2))), table(deployment(coming(2)))]
    before = None
    for current in tables:
        before = (current, envoy_resources(current, before))
        assert before[1] == envoy_resources(current)


def test_a_request_may_be_silent_for_an_hour_and_take_as_long_as_it_likes() -> None:
    routes = whole(envoy_resources(table(deployment(route(1)))).by_kind[ROUTES]["rollway"])
    actions = [found["route"] for host in routes["virtual_hosts"] for found in host["routes"] if "route" in found]
    assert {(action["timeout"], action["idle_timeout"]) for action in actions} == {("0.000s", "3600.000s")}


def test_a_newer_snapshot_of_the_same_is_the_same() -> None:
    before = table(deployment(route(1)), seen="1:1:")
    first = envoy_resources(before)
    assert envoy_resources(table(deployment(route(1)), seen="2:2:"), (before, first)) is first


def test_there_is_a_cluster_for_a_preview_only_while_there_is_one() -> None:
    with_one = envoy_resources(table(deployment(route(1), coming(2)))).by_kind
    without = envoy_resources(table(deployment(route(1)))).by_kind
    assert set(with_one[CLUSTERS]) == set(with_one[ENDPOINTS]) == {"web", "web/preview"}
    assert set(without[CLUSTERS]) == set(without[ENDPOINTS]) == {"web"}


def test_endpoints_carry_health_weight_and_who_they_are() -> None:
    found = envoy_resources(table(deployment(route(7, status=RouteStatus.DEGRADED, ratio=0.5))))
    (endpoint,) = whole(found.by_kind[ENDPOINTS]["web"])["endpoints"][0]["lb_endpoints"]
    assert endpoint["endpoint"]["address"]["socket_address"] == {"address": "10.0.0.1", "port_value": 8007}
    assert (endpoint["health_status"], endpoint["load_balancing_weight"]) == ("DEGRADED", 50)
    assert endpoint["metadata"]["filter_metadata"]["rollway"] == {
        "revision": "v1",
        "revision_id": "00000000-0000-0000-0000-000000000001",
        "route": "00000000-0000-0000-0000-000000000007",
    }


def test_a_bootstrap_names_its_proxy_and_keeps_odd_names_from_breaking_it() -> None:
    text = envoy_bootstrap(
        node_id='a"b":{c}',
        key=None,
        listen=("0.0.0.0", 80),
        admin=("127.0.0.1", 1),
        xds=("api", 7070),
        stats=("127.0.0.1", 2),
    )
    metadata = {"rollway_stats_port": 2}
    assert yaml.safe_load(text)["node"] == {"id": 'a"b":{c}', "cluster": "rollway", "metadata": metadata}


def test_traefik_gets_who_is_healthy_or_everyone_when_nobody_is() -> None:
    ill = [route(number, status=RouteStatus.UNHEALTHY) for number in (2, 3)]

    def urls(*routes: Any) -> list[str]:
        servers = traefik_document(table(deployment(*routes)))["http"]["services"]["web"]["loadBalancer"]["servers"]
        return [server["url"] for server in servers]

    assert urls(route(1), *ill) == ["http://10.0.0.1:8001"]
    assert urls(*ill) == ["http://10.0.0.1:8002", "http://10.0.0.1:8003"]
    assert urls(route(1, "[::1]:80")) == ["http://[::1]:80"]


def test_traefik_is_told_of_nobody_whose_callers_must_show_a_certificate() -> None:
    asks = TlsSettings(certificate="file:/c", key="file:/k", callers_ca="file:/ca")
    strict = replace(deployment(route(), name="strict"), rules=RequestRules(tls=asks))
    document = traefik_document(derive_table(snapshot(strict, deployment(route(2), name="web"))))
    assert set(document["http"]["services"]) - {"_nobody"} == {"web"}
    assert all(name.startswith("web") for name in document["http"]["routers"])


def test_traefik_gets_rules_ranked_as_envoy_ranks_them() -> None:
    entrances = (*deployment().entrances, *prefixes("/web/deep/", strip=False))
    http = traefik_document(table(deployment(route(1), coming(2), entrances=entrances)))["http"]
    rules = {router["rule"]: router for router in http["routers"].values()}
    wanted = "HeaderRegexp(`x-rollway-preview`, `.+`) && !Header(`x-rollway-preview`, `false`)"
    ranked = sorted(rules, key=lambda rule: -rules[rule]["priority"])
    assert ranked == [
        f"Host(`web`) && {wanted}",
        "Host(`web`)",
        "Host(`preview.web`)",
        f"(Path(`/web/deep`) || PathPrefix(`/web/deep/`)) && {wanted}",
        "(Path(`/web/deep`) || PathPrefix(`/web/deep/`))",
        f"(Path(`/web`) || PathPrefix(`/web/`)) && {wanted}",
        "(Path(`/web`) || PathPrefix(`/web/`))",
    ]
    stripped = rules["(Path(`/web`) || PathPrefix(`/web/`))"]["middlewares"]
    assert http["middlewares"][stripped[0]] == {"stripPrefix": {"prefixes": ["/web"]}}
    assert "middlewares" not in rules["(Path(`/web/deep`) || PathPrefix(`/web/deep/`))"]


def test_traefik_ranks_a_name_for_all_below_it_under_every_whole_name() -> None:
    several = deployment(route(), entrances=hosts("*.example.com", "*.eu.example.com", "web.example.com"))
    routers = traefik_document(derive_table(snapshot(several)))["http"]["routers"].values()
    ranked = sorted(
        ((router["priority"], router["rule"]) for router in routers if router["service"] == "web"), reverse=True
    )
    assert [rule for _, rule in ranked] == [
        "Host(`web.example.com`)",
        r"HostRegexp(`^.+\.eu\.example\.com$`)",
        r"HostRegexp(`^.+\.example\.com$`)",
    ]


def test_traefik_shows_a_preview_to_nobody_rather_than_what_is_live() -> None:
    http = traefik_document(table(deployment(route(1))))["http"]
    services = {router["rule"]: router["service"] for router in http["routers"].values()}
    assert services["Host(`web`)"] == "web"
    assert services["Host(`preview.web`)"] == "_nobody"
    assert "_nobody" in http["services"]
    assert traefik_document(table()) == {"http": {}}


def test_traefik_gets_weights_only_where_they_differ() -> None:
    def servers(*routes: Any) -> Any:
        return traefik_document(table(deployment(*routes)))["http"]["services"]["web"]["loadBalancer"]["servers"]

    assert servers(route(1), route(2, ratio=0.5)) == [
        {"url": "http://10.0.0.1:8001", "weight": 100},
        {"url": "http://10.0.0.1:8002", "weight": 50},
    ]
    assert all("weight" not in server for server in servers(route(1, ratio=0.5), route(2, ratio=0.5)))


def test_prometheus_gets_every_replica_with_what_it_belongs_to() -> None:
    first, second = prometheus_targets(table(deployment(route(1), coming(2, address="[::1]:90"))))
    assert first == {
        "targets": ["10.0.0.1:8001"],
        "labels": {
            "deployment": "web",
            "revision": "v1",
            "route": "00000000-0000-0000-0000-000000000001",
            "status": "healthy",
            "traffic": "live",
        },
    }
    assert (second["targets"], second["labels"]["traffic"]) == (["[::1]:90"], "preview")
