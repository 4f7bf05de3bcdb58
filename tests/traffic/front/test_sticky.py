"""Callers who stay with a replica, in the table and in the forms of proxies."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from domain.model.states import RouteStatus
from domain.traffic.caller_match import Sticky
from domain.traffic.snapshot import Canary, RequestRules, RouteInTraffic
from domain.traffic.tls import TlsSettings
from domain.traffic.tls_material import Secured, ShownCertificate
from tests.support.pictures.traffic_samples import coming, deployment, hosts, prefixes, route, snapshot, whole
from tests.traffic.test_canary import CLUSTERS, ENDPOINTS, ROUTES, new
from traffic.envoy.table_resources import envoy_resources
from traffic.explanation import AskedFor, explain
from traffic.resources import Resources
from traffic.routing_table import TlsDoor, derive_table
from traffic.traefik import traefik_document

COOKIE, HEADER = Sticky(cookie="mine.too"), Sticky(header="x-user")
SECURED = Secured(certificates=(ShownCertificate("web/given/", ("web.example.com",), "chain", "key"),))


def told(*routes: RouteInTraffic, sticky: Sticky = COOKIE, **given: Any) -> Resources:
    made = replace(deployment(*routes), rules=RequestRules(sticky=sticky, tls=given.pop("tls", None)), **given)
    return envoy_resources(derive_table(snapshot(made), door=TlsDoor("::", 443, 443)))


def ways(resources: Resources) -> list[dict[str, Any]]:
    """The routes by its host name to replicas."""
    (host, *_) = whole(resources.by_kind[ROUTES]["rollway"])["virtual_hosts"]
    return [found for found in host["routes"] if "route" in found]


def seated(number: int, seat: int | None, **settings: Any) -> RouteInTraffic:
    return route(number, seat=seat, **settings)


def test_who_has_a_seat_is_found_by_it_and_who_waits_is_there_when_the_others_are_ill() -> None:
    leaving = seated(4, 1, status=RouteStatus.TERMINATING)
    seen = told(seated(1, 0), seated(2, 2), seated(3, None), leaving).by_kind[ENDPOINTS]["web"]
    first, waiting = whole(seen)["endpoints"]
    marks = [found["metadata"]["filter_metadata"]["envoy.lb"] for found in first["lb_endpoints"]]
    assert marks == [
        {"serving": "yes", "hash_key": "seat 0"},
        {"serving": "yes", "hash_key": "seat 2"},
        {"serving": "no", "hash_key": "seat 1"},
    ]
    (spare,) = waiting["lb_endpoints"]
    assert (waiting["priority"], spare["metadata"]["filter_metadata"]["envoy.lb"]) == (1, {"serving": "yes"})
    assert spare["metadata"]["filter_metadata"]["rollway"]["revision_id"] == str(UUID(int=1)), "it answers for itself"


def test_without_any_seat_all_take_requests_as_an_older_release_leaves_them() -> None:
    (only,) = whole(told(seated(1, None), seated(2, None)).by_kind[ENDPOINTS]["web"])["endpoints"]
    assert len(only["lb_endpoints"]) == 2


@pytest.mark.parametrize(("most", "bound"), [(None, {}), (1.5, {"hash_balance_factor": 150})])
def test_each_side_of_a_canary_is_a_ring_and_a_preview_is_none(most: float | None, bound: dict[str, int]) -> None:
    sticky = replace(HEADER, max_load=most)
    clusters = told(seated(1, 0), new(2), sticky=sticky, canary=Canary(500)).by_kind[CLUSTERS]
    for name in ("web", "web/canary"):
        assert clusters[name].content["lb_policy"] == "RING_HASH"
        assert clusters[name].content["common_lb_config"]["consistent_hashing_lb_config"] == bound
    assert told(seated(1, 0), coming(3)).by_kind[CLUSTERS]["web/preview"].content["lb_policy"] == "LEAST_REQUEST"


def test_a_header_finds_the_side_of_a_canary_and_the_replica() -> None:
    found = ways(told(seated(1, 0), new(2), sticky=HEADER, canary=Canary(500, sticky=UUID(int=7))))
    assert len(found) == 2
    for way in found:
        assert way["route"]["weighted_clusters"]["use_hash_policy"]
        assert way["route"]["hash_policy"] == [{"header": {"header_name": "x-user"}}]
        assert "response_headers_to_add" not in way, "no cookie of the canary beside it"


def test_a_cookie_is_given_to_who_has_none_and_for_tls_alone_where_nobody_gets_in_without() -> None:
    by_host, by_path = hosts("web.example.com"), prefixes("/web/")
    for entrances, tls, secure in (
        (by_host, TlsSettings(), True),
        (by_host, TlsSettings(redirect=False), False),
        ((*by_host, *by_path), TlsSettings(), False),
        (by_host, None, False),
    ):
        found = ways(told(seated(1, 0), entrances=entrances, tls=tls, secured=SECURED if tls else None))
        known, _, unknown, _ = found
        assert known["route"]["hash_policy"] == [{"cookie": {"name": "mine.too"}}]
        regex = known["match"]["headers"][0]["string_match"]["safe_regex"]["regex"]
        assert regex == r"(.*; *)?mine\.too=[^; ].*"
        assert unknown["route"]["hash_policy"] == [{"header": {"header_name": "x-request-id"}}]
        (given,) = unknown["response_headers_to_add"]
        assert given["header"]["value"].startswith("mine.too=%REQ(x-request-id)%; Path=/; Max-Age=")
        assert given["header"]["value"].endswith("; Secure") is secure


def test_copies_for_a_mirror_go_with_the_requests_of_callers_who_stay() -> None:
    found = ways(told(seated(1, 0), new(2), canary=Canary(0, mirrored=1000)))
    assert ["request_mirror_policies" in way["route"] for way in found] == [True, True, False, False, False, False]
    assert all("hash_policy" in way["route"] for way in found)


def test_traefik_keeps_callers_by_cookies_of_its_own_and_by_no_header() -> None:
    def services(sticky: Sticky) -> dict[str, Any]:
        made = replace(deployment(seated(1, 0), new(2)), rules=RequestRules(sticky=sticky), canary=Canary(500))
        found: dict[str, Any] = traefik_document(derive_table(snapshot(made)))["http"]["services"]
        return found

    found = services(COOKIE)
    assert found["web"]["weighted"]["sticky"]["cookie"]["name"] == "mine.too-side"
    for side in ("web_live", "web_canary"):
        assert found[side]["loadBalancer"]["sticky"]["cookie"]["name"] == "mine.too"
    assert "sticky" not in str(services(HEADER))


def test_it_is_explained_that_a_caller_stays() -> None:
    made = replace(deployment(seated(1, 0)), rules=RequestRules(sticky=HEADER))
    (*_, said) = explain(derive_table(snapshot(made)), AskedFor.parse("http://web/")).said
    assert said.says == "1 replica, all healthy, a caller stays with one by header x-user"
