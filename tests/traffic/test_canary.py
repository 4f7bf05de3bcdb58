"""A canary in the table: two sides, each a cluster of its own, and their shares."""

from dataclasses import replace
from typing import Any

from domain.model import TrafficStatus
from domain.traffic.published import RouteInTraffic
from tests.support.traffic_samples import deployment, route, snapshot, whole
from traffic.envoy import envoy_resources
from traffic.prometheus import prometheus_targets
from traffic.resources import ResourceKind
from traffic.table import TrafficTable, derive_table
from traffic.traefik import traefik_document

CLUSTERS, ENDPOINTS, ROUTES = ResourceKind


def new(number: int, **settings: Any) -> RouteInTraffic:
    """Healthy, in traffic, of the revision that is rolled out."""
    return route(number, **{"revision": "v2", "is_candidate": True, "is_current": False, **settings})


def table(*routes: RouteInTraffic, weight: int | None, has_canary: bool = True) -> TrafficTable:
    return derive_table(snapshot(replace(deployment(*routes), weight=weight, has_canary=has_canary)))


def numbers(of: tuple[Any, ...] | None) -> list[int]:
    return [upstream.route_id.int for upstream in of or ()]


def sides(*routes: RouteInTraffic, weight: int | None) -> tuple[list[int], list[int], int]:
    (service,) = table(*routes, weight=weight).services
    return numbers(service.live), numbers(service.canary), service.weight


def test_who_is_on_which_side() -> None:
    left = route(7, revision="v0", is_current=False)
    idle = new(8, traffic=TrafficStatus.INACTIVE)
    assert sides(route(1), new(2), idle, weight=500) == ([1], [2], 500)
    assert sides(route(1), new(2), weight=0) == ([1], [2], 0)
    assert sides(route(1), left, new(2), weight=0) == ([1], [2], 0), "what another canary left behind gets nothing"
    # who gets nothing on one side is stood in for, so that a proxy with an older weight always finds somebody
    assert sides(route(1), weight=500) == ([1], [1], 0)
    assert sides(new(2), weight=500) == ([2], [2], 0)
    assert sides(left, new(2), weight=500) == ([7], [2], 500)
    assert sides(route(1), new(2), weight=None) == ([1, 2], [1, 2], 0)


def test_envoy_gets_a_cluster_for_each_side_before_a_route_names_it_and_for_as_long_as_one_might() -> None:
    known = envoy_resources(table(route(1), new(2), weight=0)).by_kind
    split = envoy_resources(table(route(1), new(2), weight=50)).by_kind
    gone = envoy_resources(table(route(1), weight=None, has_canary=False)).by_kind
    assert [set(of[ENDPOINTS]) for of in (known, split, gone)] == [
        {"web", "web/canary"},
        {"web", "web/canary"},
        {"web"},
    ]
    assert [of[CLUSTERS].keys() == of[ENDPOINTS].keys() for of in (known, split, gone)] == [True] * 3
    assert known[CLUSTERS] == split[CLUSTERS]
    assert known[ENDPOINTS] == split[ENDPOINTS]
    assert known[ROUTES] == gone[ROUTES] != split[ROUTES]
    routes = whole(split[ROUTES]["rollway"])
    actions = [found["route"] for host in routes["virtual_hosts"] for found in host["routes"] if "route" in found]
    shares = [action["weighted_clusters"]["clusters"] for action in actions]
    assert shares == [[{"name": "web", "weight": 9950}, {"name": "web/canary", "weight": 50}]] * len(actions)


def test_traefik_gets_a_weighted_service() -> None:
    services = traefik_document(table(route(1), new(2), weight=500))["http"]["services"]
    assert services["web"] == {
        "weighted": {"services": [{"name": "web_live", "weight": 9500}, {"name": "web_canary", "weight": 500}]}
    }
    assert services["web_live"] == {"loadBalancer": {"servers": [{"url": "http://10.0.0.1:8001"}]}}
    assert services["web_canary"] == {"loadBalancer": {"servers": [{"url": "http://10.0.0.1:8002"}]}}
    assert set(traefik_document(table(route(1), new(2), weight=0))["http"]["services"]) == {"web", "_nobody"}


def test_prometheus_finds_a_canary_once() -> None:
    kinds = [target["labels"]["traffic"] for target in prometheus_targets(table(route(1), new(2), weight=500))]
    assert kinds == ["live", "canary"]
    assert len(prometheus_targets(table(route(1), new(2), weight=None))) == 2
