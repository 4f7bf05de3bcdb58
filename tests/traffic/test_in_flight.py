"""What an Envoy has under way, from its pages of clusters and of itself."""

import json
from typing import Any

import pytest

from traffic.envoy.stats import (
    by_cluster,
    clusters_page,
    connections,
    connections_page,
    is_alone,
    known_connections,
    read_answered,
    under_way,
)
from traffic.resources import NO_RESOURCES, Named, ResourceKind, made_anew, resource, together


def test_what_is_under_way_is_told_by_deployment_and_address_a_canarys_in_both_of_its_clusters() -> None:
    gauges = [{"name": "rq_active", "type": "GAUGE", "value": "2"}, {"name": "rq_pending_active", "value": "1"}]
    others = [{"name": "rq_total", "value": "9"}, {"name": "rq_active", "type": "GAUGE"}]

    def host(port: int, stats: list[dict[str, str]]) -> dict[str, Any]:
        return {"address": {"socket_address": {"address": "10.0.0.1", "port_value": port}}, "stats": stats}

    clusters = [{"name": "web", "host_statuses": [host(8001, gauges), host(8002, others)]}, {"name": "api"}]
    clusters.append({"name": "web/canary", "host_statuses": [host(8001, gauges)]})
    waiting = {"address": {"envoy_internal_address": {"server_listener_name": "rollway-held"}}, "stats": gauges}
    clusters.append({"name": "web", "host_statuses": [waiting]})
    body = json.dumps({"cluster_statuses": clusters}).encode()
    assert under_way(body) == {("web", "10.0.0.1", 8001): 6, ("web", "10.0.0.1", 8002): 0}
    assert by_cluster(body) == {"web": 3, "web/canary": 3}
    assert clusters_page(["web", "a.b"]) == "/clusters?format=json&filter=%5E%28a%5C.b%7Cweb%29%28%2F.%2A%29%3F%24"
    assert clusters_page(map(str, range(501))) == "/clusters?format=json", "too many for a path"
    with pytest.raises(ValueError, match=r"."):
        under_way(b"no healthy upstream")


def test_how_often_a_replica_has_answered_is_told_in_all_of_its_clusters() -> None:
    counters = [{"name": "rq_success", "value": "2"}, {"name": "rq_error", "value": "3"}]
    where = {"socket_address": {"address": "10.0.0.1", "port_value": 80}}
    clusters = [
        {"name": f"web{side}", "host_statuses": [{"address": where, "stats": counters}]} for side in ("", "/canary")
    ]
    assert read_answered(json.dumps({"cluster_statuses": clusters}).encode()) == {("web", "10.0.0.1", 80): 4}


def test_connections_of_all_clusters_are_compared_with_those_of_the_clusters_that_there_are() -> None:
    """Copies of a mirror count under a name of their own."""
    gauges = {"web": 5, "web/canary/http2": 2, "a.b": 1, "web/mirror": 4}
    stats = [{"name": f"cluster.{name}.upstream_cx_active", "value": count} for name, count in gauges.items()][:3]
    assert connections(json.dumps({"stats": stats}).encode()) == {"web": 7, "a.b": 1}
    active = [{"name": "cx_active", "value": "2"}, {"name": "cx_total", "value": "9"}]
    waiting = {"address": {"envoy_internal_address": {"server_listener_name": "rollway-held"}}, "stats": active}
    clusters = [{"name": name, "host_statuses": [waiting]} for name in gauges]
    assert known_connections(json.dumps({"cluster_statuses": clusters}).encode()) == {"web": 4, "a.b": 2}
    page = "%5Ecluster%5C.%28a%5C.b%7Cweb%29%28%2F.%2A%29%3F%5C.upstream_cx_active%24"
    assert connections_page(["web", "a.b"]) == f"/stats?usedonly&type=Gauges&format=json&filter={page}"


def test_a_cluster_that_is_dropped_or_made_again_is_named_and_no_new_one() -> None:
    def clusters(**settings: int) -> Named:
        return {name: resource({"timeout": value}) for name, value in settings.items()}

    before, after = (
        together({**NO_RESOURCES.by_kind, ResourceKind.CLUSTERS: found})
        for found in (clusters(same=1, other=1, gone=1), clusters(same=1, other=2, new=1))
    )
    assert made_anew(before, after) == {"other", "gone"}
    assert made_anew(after, after) == set()


@pytest.mark.parametrize("alone", [{}, {"parent_connections": 0}])
def test_a_proxy_is_alone_unless_the_process_whose_place_it_took_has_connections(alone: dict[str, int]) -> None:
    def page(**gauges: int) -> bytes:
        stats = [{"name": f"server.{name}", "value": value} for name, value in gauges.items()]
        return json.dumps({"stats": stats}).encode()

    assert is_alone(page(uptime=13, **alone))
    assert not is_alone(page(uptime=13, parent_connections=3))


@pytest.mark.parametrize("body", [b"", b"no healthy upstream", b"{}", b'{"stats": []}'])
def test_a_page_that_says_nothing_of_its_process_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        is_alone(body)
