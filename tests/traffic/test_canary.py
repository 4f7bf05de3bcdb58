"""A canary in the table: two sides, each a cluster of its own, and their shares."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from domain.model.states import RouteStatus, TrafficStatus
from domain.traffic.snapshot import Canary, RouteInTraffic
from tests.support.pictures.traffic_samples import deployment, route, snapshot, whole
from traffic.envoy.table_resources import envoy_resources
from traffic.prometheus import prometheus_targets
from traffic.resources import Named, ResourceKind
from traffic.routing_table import TrafficTable, derive_table
from traffic.traefik import traefik_document

CLUSTERS, ENDPOINTS, ROUTES, *_ = ResourceKind
SICK = RouteStatus.UNHEALTHY


def new(number: int, **settings: Any) -> RouteInTraffic:
    """Healthy, in traffic, of the revision that is rolled out."""
    return route(number, **{"revision": "v2", "is_candidate": True, "is_current": False, **settings})


def table(*routes: RouteInTraffic, weight: int | None, has_canary: bool = True) -> TrafficTable:
    return derive_table(snapshot(replace(deployment(*routes), canary=Canary(weight) if has_canary else None)))


def beside(*routes: RouteInTraffic, weight: int | None, fresh: set[int]) -> TrafficTable:
    """With a fresh baseline, of these numbers."""
    canary = Canary(weight, baseline=frozenset(UUID(int=number) for number in fresh))
    return derive_table(snapshot(replace(deployment(*routes), canary=canary)))


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


def test_a_side_that_is_not_healthy_gets_nothing_while_the_other_one_is() -> None:
    sick_old, sick_new = route(1, status=SICK), new(2, status=SICK)
    assert sides(route(1), sick_new, weight=500) == ([1], [1], 0)
    assert sides(route(1), sick_new, new(3), weight=500) == ([1], [2, 3], 500)
    assert sides(sick_old, new(2), weight=500) == ([1, 2], [1, 2], 0), "a proxy prefers the healthy one"
    assert sides(sick_old, sick_new, weight=500) == ([1, 2], [1, 2], 0)


def test_the_others_stand_in_for_a_canary_that_cannot_answer_and_count_as_its_failures() -> None:
    told = envoy_resources(table(route(1), new(2), weight=500)).by_kind[ENDPOINTS]
    own, others = whole(told["web/canary"])["endpoints"]
    assert (own.get("priority", 0), others["priority"]) == (0, 1)
    (stands_in,) = others["lb_endpoints"]
    assert stands_in["endpoint"]["address"]["socket_address"]["port_value"] == 8001
    who = stands_in["metadata"]["filter_metadata"]["rollway"]
    assert who["revision_id"] == own["lb_endpoints"][0]["metadata"]["filter_metadata"]["rollway"]["revision_id"] + "!"
    assert len(whole(told["web"])["endpoints"]) == 1, "the canary stands in for nobody"
    gone = envoy_resources(table(route(1), weight=500)).by_kind[ENDPOINTS]
    assert len(whole(gone["web/canary"])["endpoints"]) == 1


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


@pytest.mark.parametrize(
    ("routes", "weight", "fresh", "expected"),
    [
        ([route(1), route(2), new(3)], 500, {2}, ([1], [3], [2], 500)),
        # before its first weight it idles, as the canary does
        ([route(1), route(2), new(3)], 0, {2}, ([1], [3], [2], 0)),
        # as many as the canary has: the healthy ones first, then the eldest
        ([route(1), route(2), route(4), new(3)], 500, {2, 4}, ([1, 4], [3], [2], 500)),
        ([route(1), route(2, status=SICK), route(4), new(3)], 500, {2, 4}, ([1, 2], [3], [4], 500)),
        ([route(1), route(2), route(4), new(3), new(5)], 500, {2, 4}, ([1], [3, 5], [2, 4], 500)),
        # none is there yet, or none but these is left, or no canary: who is live stands in, and is asked as such
        ([route(1), new(3)], 500, set(), ([1], [3], [1], 0)),
        ([route(2), new(3)], 500, {2}, ([2], [3], [2], 0)),
        ([route(1), route(2)], 500, {2}, ([1, 2], [1, 2], [1, 2], 0)),
        # what is past all weights, or on the way back, is live as it was before
        ([route(1), route(2), new(3)], None, {2}, ([1, 2, 3], [1, 2, 3], [1, 2, 3], 0)),
        ([route(1), route(2), new(3)], 0, set(), ([1, 2], [3], [1, 2], 0)),
    ],
)
def test_who_is_the_baseline(
    routes: list[RouteInTraffic],
    weight: int | None,
    fresh: set[int],
    expected: tuple[list[int], list[int], list[int], int],
) -> None:
    (service,) = beside(*routes, weight=weight, fresh=fresh).services
    found = (numbers(service.live), numbers(service.canary), numbers(service.baseline), service.baseline_weight)
    assert found == expected


def test_a_baseline_is_a_third_side_for_envoy_and_traefik_and_prometheus() -> None:
    three = (route(1), route(2), new(3))
    split, none_yet = beside(*three, weight=500, fresh={2}), beside(route(1), new(3), weight=500, fresh=set())
    told, told_none = (envoy_resources(found).by_kind for found in (split, none_yet))
    assert set(told[ENDPOINTS]) == set(told_none[ENDPOINTS]) == {"web", "web/canary", "web/baseline"}
    in_order = [("web", 9000), ("web/baseline", 500), ("web/canary", 500)]
    assert shares_of(told) == in_order, "the canary is last, so that its sticky callers stay"
    assert shares_of(told_none) == [("web", 9500), ("web/canary", 500)]
    assert {upstream.route_id.int for upstream in split.services[0].serving} == {1, 2, 3}
    services = traefik_document(split)["http"]["services"]
    assert services["web"]["weighted"]["services"] == [
        {"name": "web_live", "weight": 9000},
        {"name": "web_canary", "weight": 500},
        {"name": "web_baseline", "weight": 500},
    ]
    assert services["web_baseline"] == {"loadBalancer": {"servers": [{"url": "http://10.0.0.1:8002"}]}}
    kinds = [target["labels"]["traffic"] for target in prometheus_targets(split)]
    assert kinds == ["live", "canary", "baseline"]


def shares_of(told: Mapping[ResourceKind, Named]) -> list[tuple[str, int]]:
    action = whole(told[ROUTES]["rollway"])["virtual_hosts"][0]["routes"][-1]["route"]
    return [(cluster["name"], cluster["weight"]) for cluster in action["weighted_clusters"]["clusters"]]


def test_prometheus_finds_a_canary_once() -> None:
    kinds = [target["labels"]["traffic"] for target in prometheus_targets(table(route(1), new(2), weight=500))]
    assert kinds == ["live", "canary"]
    assert len(prometheus_targets(table(route(1), new(2), weight=None))) == 2
