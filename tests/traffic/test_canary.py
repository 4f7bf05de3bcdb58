"""A canary in the table: two sides, each a cluster of its own, and their shares."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from domain.model import TrafficStatus
from domain.traffic.published import RouteInTraffic
from tests.support.traffic_samples import deployment, route, snapshot
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
    routes = split[ROUTES]["rollway"].content
    actions = [found["route"] for host in routes["virtual_hosts"] for found in host["routes"] if "route" in found]
    shares = [action["weighted_clusters"]["clusters"] for action in actions]
    assert shares == [[{"name": "web", "weight": 9950}, {"name": "web/canary", "weight": 50}]] * len(actions)


def sticky(*routes: RouteInTraffic, weight: int) -> TrafficTable:
    given = replace(deployment(*routes), weight=weight, has_canary=True, sticky=UUID(int=0xABCDEF))
    return derive_table(snapshot(given))


COOKIE = "rollway-canary-000000abcdef"


def test_envoy_tells_callers_apart_by_a_hash_of_their_cookie_and_gives_one_to_who_has_none() -> None:
    (host, *_) = (
        envoy_resources(sticky(route(1), new(2), weight=500)).by_kind[ROUTES]["rollway"].content["virtual_hosts"]
    )
    live = [found for found in host["routes"] if "weighted_clusters" in found.get("route", {})]
    assert all(found["route"]["weighted_clusters"]["use_hash_policy"] for found in live)
    has_one = {"name": "cookie", "string_match": {"contains": f"{COOKIE}="}}
    told = [
        (
            has_one in found["match"].get("headers", []),
            found["route"]["hash_policy"],
            "response_headers_to_add" in found,
        )
        for found in live
    ]
    assert told == [
        *[(True, [{"cookie": {"name": COOKIE}}], False)] * 2,
        *[(False, [{"header": {"header_name": "x-request-id"}}], True)] * 2,
    ]
    without = envoy_resources(sticky(route(1), new(2), weight=0)).by_kind[ROUTES]["rollway"].content
    assert "cookie" not in str(without)


def mirrored(*routes: RouteInTraffic) -> TrafficTable:
    given = replace(deployment(*routes), weight=0, has_canary=True, mirrored=1000)
    return derive_table(snapshot(given))


def test_envoy_copies_only_what_reads_and_ends_to_a_cluster_of_its_own() -> None:
    told = envoy_resources(mirrored(route(1), new(2))).by_kind
    assert set(told[CLUSTERS]) == set(told[ENDPOINTS]) == {"web", "web/canary", "web/mirror"}
    (host, *_) = told[ROUTES]["rollway"].content["virtual_hosts"]
    copied, *others = [found for found in host["routes"] if "route" in found]
    assert copied["route"]["request_mirror_policies"] == [
        {
            "cluster": "web/mirror",
            "runtime_fraction": {"default_value": {"numerator": 1000, "denominator": "TEN_THOUSAND"}},
            "disable_shadow_host_suffix_append": True,
        }
    ]
    (methods, upgrade, stream, _) = copied["match"]["headers"]
    assert methods["string_match"] == {"safe_regex": {"regex": "GET|HEAD|OPTIONS"}}
    assert [(header["name"], header["invert_match"]) for header in (upgrade, stream)] == [
        ("upgrade", True),
        ("accept", True),
    ]
    assert {found["route"]["cluster"] for found in (copied, *others)} == {"web"}
    assert "request_mirror_policies" not in str(others)
    gone = envoy_resources(mirrored(route(1))).by_kind
    assert set(gone[CLUSTERS]) == {"web", "web/canary"}, "without a replica of the canary nothing is copied"
    assert traefik_document(mirrored(route(1), new(2))) == traefik_document(table(route(1), new(2), weight=0))


def test_traefik_keeps_callers_by_its_own_cookie() -> None:
    services = traefik_document(sticky(route(1), new(2), weight=500))["http"]["services"]
    assert services["web"]["weighted"]["sticky"] == {
        "cookie": {"name": COOKIE, "maxAge": 604_800, "httpOnly": True, "sameSite": "lax"}
    }


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
