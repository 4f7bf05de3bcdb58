"""Replicas that are spoken to in different ways: a cluster for each way, and each its share."""

from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

import pytest

from domain.model.states import RouteStatus, TrafficStatus
from domain.traffic.caller_match import Sticky
from domain.traffic.snapshot import Canary, DeploymentInTraffic, RequestRules, RouteInTraffic
from domain.traffic.tls import ReplicaTls, UpstreamTls
from domain.traffic.wire import Protocol, ReplicaWire, Wire
from tests.support.pictures.traffic_samples import coming, deployment, route, snapshot, whole
from traffic.envoy.clusters import clusters_of, is_left
from traffic.envoy.envoy_names import on_wire, side_of, wire_of
from traffic.envoy.stats import callers_page
from traffic.envoy.table_resources import envoy_resources
from traffic.prometheus import prometheus_targets
from traffic.resources import ResourceKind
from traffic.routing_table import Service, derive_table
from traffic.traefik import traefik_document

CLUSTERS, ENDPOINTS, ROUTES, *_ = ResourceKind
WIRES = {
    "": ReplicaWire(),
    "http2": ReplicaWire(Protocol.HTTP2),
    "tls-1": ReplicaWire(tls=ReplicaTls("web", None)),
    "tls-2": ReplicaWire(tls=ReplicaTls("other", "PEM")),
    "http2-tls-1": ReplicaWire(Protocol.HTTP2, ReplicaTls("web", None)),
}
SICK, LEAVES = RouteStatus.UNHEALTHY, RouteStatus.TERMINATING


def on_wires(*routes: RouteInTraffic, wire: str = "", **more: Any) -> DeploymentInTraffic:
    return replace(deployment(*routes), wire=wire, wires=WIRES, **more)


def service(*routes: RouteInTraffic, **more: Any) -> Service:
    (made,) = derive_table(snapshot(on_wires(*routes, **more))).services
    return made


def new(number: int, **settings: Any) -> RouteInTraffic:
    return route(number, **{"revision": "v2", "is_candidate": True, "is_current": False, "wire": "http2", **settings})


def leads(*routes: RouteInTraffic, **more: Any) -> list[tuple[str, int]]:
    """Where the routes lead, with the shares."""
    told = envoy_resources(derive_table(snapshot(on_wires(*routes, **more)))).by_kind[ROUTES]
    (host,) = (found for found in whole(told["rollway"])["virtual_hosts"] if found["name"] == "web")
    actions = [made["route"] for made in host["routes"] if "route" in made and "preview" not in str(made["match"])]
    action = actions[-1]
    if "cluster" in action:
        return [(action["cluster"], 10_000)]
    return [(found["name"], found["weight"]) for found in action["weighted_clusters"]["clusters"]]


@pytest.mark.parametrize("wire", WIRES)
def test_a_deployment_that_is_spoken_to_in_one_way_has_one_cluster(wire: str) -> None:
    name = on_wire("web", wire)
    alike = [route(number, wire=wire) for number in (1, 2)]
    assert (set(clusters_of(service(*alike, wire=wire))), leads(*alike, wire=wire)) == ({name}, [(name, 10_000)])
    assert set(clusters_of(service(wire=wire))) == {name}, "also where nothing serves"


def test_each_cluster_speaks_its_own_protocol() -> None:
    told = envoy_resources(derive_table(snapshot(on_wires(route(1), new(2), new(3, wire="http2-tls-1"))))).by_kind
    made = {name: str(found.content) for name, found in told[CLUSTERS].items()}
    assert {name: "http2_protocol_options" in found for name, found in made.items()} == {
        "web": False,
        "web/http2": True,
        "web/http2-tls-1": True,
    }
    assert [name for name, found in made.items() if "transport_socket" in found] == ["web/http2-tls-1"]


@pytest.mark.parametrize(
    ("routes", "shares"),
    [
        ([route(1), route(2), new(3)], [("web", 6667), ("web/http2", 3333)]),
        ([route(1), new(2), new(3), new(4)], [("web", 2500), ("web/http2", 7500)]),
        ([route(1), new(2, status=SICK)], [("web", 10_000)]),
        ([route(1, status=SICK), new(2)], [("web/http2", 10_000)]),
        ([route(1, status=SICK), new(2, status=SICK)], [("web", 5000), ("web/http2", 5000)]),
        ([route(1, status=LEAVES, traffic=TrafficStatus.INACTIVE), new(2)], [("web/http2", 10_000)]),
        ([route(1), new(2, traffic=TrafficStatus.INACTIVE)], [("web", 10_000)]),
    ],
)
def test_each_way_gets_as_many_requests_as_it_has_replicas_that_are_well(
    routes: list[RouteInTraffic], shares: list[tuple[str, int]]
) -> None:
    assert leads(*routes) == shares


def test_who_waits_for_a_seat_gets_no_share() -> None:
    sticky = RequestRules(sticky=Sticky(cookie="mine"))
    assert leads(route(1, seat=0), new(2), rules=sticky) == [("web", 10_000)]
    assert leads(route(1, seat=0), new(2, seat=1), rules=sticky) == [("web", 5000), ("web/http2", 5000)]


def test_a_canary_has_its_weight_and_nobody_stands_in_who_is_spoken_to_otherwise() -> None:
    weighed: dict[str, Any] = {"canary": Canary(500)}
    assert leads(route(1), new(2), **weighed) == [("web", 9500), ("web/canary/http2", 500)]
    assert leads(route(1, wire="http2"), new(2, wire=""), **weighed) == [("web/http2", 9500), ("web/canary", 500)]
    for wire, stand_ins in (("http2", 0), ("", 1)):
        told = envoy_resources(derive_table(snapshot(on_wires(route(1), new(2, wire=wire), **weighed)))).by_kind
        assert len(whole(told[ENDPOINTS][on_wire("web/canary", wire)])["endpoints"]) == 1 + stand_ins


def test_copies_and_previews_go_where_they_are_understood() -> None:
    mirrored = service(route(1), new(2), canary=Canary(0, mirrored=100))
    assert {"web/mirror/http2", "web/canary/http2"} < set(clusters_of(mirrored))
    looked_at = on_wires(route(1), coming(2, wire="http2"))
    told = envoy_resources(derive_table(snapshot(looked_at))).by_kind[ROUTES]
    assert "'cluster': 'web/preview/http2'" in str(whole(told["rollway"]))


@pytest.mark.parametrize("seed", range(200))
def test_whatever_serves_each_replica_is_asked_in_its_own_way_and_told_of_until_it_has_ended(seed: int) -> None:
    chance = Random(seed)
    routes = [some_route(number, chance) for number in range(1, chance.randrange(2, 8))]
    canary = chance.choice([None, Canary(chance.choice([None, 0, 500])), Canary(500, baseline=frozenset())])
    made = service(*routes, canary=canary, wire=chance.choice(list(WIRES)))
    clusters = clusters_of(made)
    for name, upstreams in clusters.items():
        assert {upstream.wire for upstream in upstreams} <= {wire_of(name)}
    reached = leads(*routes, canary=canary, wire=made.wire)
    assert sum(share for _, share in reached) == 10_000
    assert all(name in clusters and not is_left(name, made) for name, _ in reached)
    live = [upstream for name, its in clusters.items() if side_of(name) == "web" for upstream in its]
    assert sorted(map(str, live)) == sorted(map(str, (*made.live, *made.draining)))


def some_route(number: int, chance: Random) -> RouteInTraffic:
    wire = chance.choice(list(WIRES))
    status = chance.choice([RouteStatus.HEALTHY, SICK, LEAVES])
    traffic = TrafficStatus.INACTIVE if status is LEAVES else TrafficStatus.ACTIVE
    make = chance.choice([route, new])
    return make(number, wire=wire, status=status, traffic=traffic, revision_id=UUID(int=number))


def test_traefik_asks_each_server_in_its_own_protocol_and_is_told_of_nobody_that_speaks_tls() -> None:
    def servers(*routes: RouteInTraffic) -> list[str]:
        services = traefik_document(derive_table(snapshot(on_wires(*routes))))["http"].get("services", {})
        return [server["url"] for server in services["web"]["loadBalancer"]["servers"]] if "web" in services else []

    assert servers(route(1), new(2)) == ["http://10.0.0.1:8001", "h2c://10.0.0.1:8002"]
    assert servers(route(1), new(2, wire="tls-1")) == []
    assert servers(route(1), new(2, wire="tls-1", traffic=TrafficStatus.INACTIVE, status=SICK)) != []


def test_prometheus_reads_each_page_as_its_replica_serves_it() -> None:
    targets = prometheus_targets(derive_table(snapshot(on_wires(route(1), new(2, wire="tls-1")))))
    assert [target["labels"].get("__scheme__") for target in targets] == [None, "https"]


def test_ways_have_names_of_their_own() -> None:
    tls = [None, UpstreamTls(), UpstreamTls(ca="file:/a"), UpstreamTls(ca="file:/b"), UpstreamTls(server_name="a")]
    names = [Wire(protocol, its).name for protocol in Protocol for its in tls]
    assert len(set(names)) == len(names)
    assert names[0] == ""
    for side in ("web", "web/canary", "web/preview", "web/baseline", "web/mirror"):
        assert [(side_of(on_wire(side, name)), wire_of(on_wire(side, name))) for name in names] == [
            (side, name) for name in names
        ]
    assert all(name.startswith(("http2", "tls")) for name in names[1:]), callers_page(["web"])
