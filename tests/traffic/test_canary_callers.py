"""A canary's callers in the table: who stays on a side, and whose requests are copied."""

from dataclasses import replace
from uuid import UUID

from domain.traffic.snapshot import Canary, RouteInTraffic
from tests.support.pictures.traffic_samples import deployment, route, snapshot, whole
from tests.traffic.test_canary import CLUSTERS, ENDPOINTS, ROUTES, new, table
from traffic.envoy.table_resources import envoy_resources
from traffic.routing_table import TrafficTable, derive_table
from traffic.traefik import traefik_document


def sticky(*routes: RouteInTraffic, weight: int) -> TrafficTable:
    given = replace(deployment(*routes), canary=Canary(weight, sticky=UUID(int=0xABCDEF)))
    return derive_table(snapshot(given))


COOKIE = "rollway-canary-000000abcdef"


def test_envoy_tells_callers_apart_by_a_hash_of_their_cookie_and_gives_one_to_who_has_none() -> None:
    (host, *_) = whole(envoy_resources(sticky(route(1), new(2), weight=500)).by_kind[ROUTES]["rollway"])[
        "virtual_hosts"
    ]
    live = [found for found in host["routes"] if "weighted_clusters" in found.get("route", {})]
    assert all(found["route"]["weighted_clusters"]["use_hash_policy"] for found in live)
    has_one = {
        "name": "cookie",
        "string_match": {"safe_regex": {"regex": r"(.*; *)?rollway\-canary\-000000abcdef=[^; ].*"}},
    }
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
    without = whole(envoy_resources(sticky(route(1), new(2), weight=0)).by_kind[ROUTES]["rollway"])
    assert "cookie" not in str(without)


def mirrored(*routes: RouteInTraffic) -> TrafficTable:
    given = replace(deployment(*routes), canary=Canary(0, mirrored=1000))
    return derive_table(snapshot(given))


def test_envoy_copies_only_what_reads_and_ends_to_a_cluster_of_its_own() -> None:
    told = envoy_resources(mirrored(route(1), new(2))).by_kind
    assert set(told[CLUSTERS]) == set(told[ENDPOINTS]) == {"web", "web/canary", "web/mirror"}
    (host, *_) = whole(told[ROUTES]["rollway"])["virtual_hosts"]
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
