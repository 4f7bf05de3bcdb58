"""What an Envoy has counted, from its page of statistics."""

import json
from itertools import accumulate
from typing import Any
from uuid import UUID

import pytest

from domain.model.answer_counts import FIRST_BYTE_MS, Answers, Copies, Counters
from domain.model.states import RouteStatus, TrafficStatus
from domain.traffic.request_counts import WAITED_MS, Requests
from tests.support.pictures.traffic_samples import deployment, route, snapshot, whole
from traffic.envoy.clusters import assignment_of, clusters_of
from traffic.envoy.envoy_names import MIRROR_STATISTICS
from traffic.envoy.stats import LONGEST_MS, callers_page, read_counters
from traffic.routing_table import derive_table

OLD, NEW = UUID(int=1), UUID(int=2)
FAST = (3, 1, *(0 for _ in FIRST_BYTE_MS[1:]))
NOBODY = ""


def stat(kind: str, cluster: str, revision: UUID | str, value: int) -> dict[str, Any]:
    return {"name": f"rollway.{kind}.cluster.{cluster}.revision.{revision}", "value": value}


def copies(deployment: str, **of: int) -> list[dict[str, Any]]:
    names = {kind: f"cluster.{MIRROR_STATISTICS}.{deployment}.upstream_rq_{kind}" for kind in of}
    return [{"name": names[kind], "value": value} for kind, value in of.items()]


def histogram(cluster: str, revision: UUID, counts: tuple[int, ...]) -> dict[str, Any]:
    edges = [*FIRST_BYTE_MS, LONGEST_MS]
    buckets = [
        {"upper_bound": edge, "interval": 0, "cumulative": total}
        for edge, total in zip(edges, accumulate(counts), strict=True)
    ]
    return {"name": f"rollway.first_byte.cluster.{cluster}.revision.{revision}", "buckets": buckets}


def page(*stats: dict[str, Any], histograms: list[dict[str, Any]] | None = None) -> bytes:
    found = [{"name": "server.uptime", "value": 13}, *stats, {"histograms": histograms or []}]
    return json.dumps({"stats": found}).encode()


def test_counters_are_those_of_a_deployment_by_revision() -> None:
    its = read_counters(
        page(
            stat("done", "a.b", OLD, 9),
            stat("begun", "a.b", OLD, 12),
            stat("failed", "a.b", OLD, 3),
            stat("cut", "a.b", OLD, 1),
            stat("refused", "a.b", OLD, 2),
            stat("done", "a.b/next", NEW, 4),
            stat("begun", "a.b/next", NEW, 5),
            stat("again", "a.b", OLD, 5),
            stat("again_failed", "a.b", OLD, 2),
            stat("done", "a.b/next", f"{NEW}!", 6),
            stat("failed", "a.b/next", f"{NEW}!", 1),
            stat("again", "a.b/next", f"{NEW}!", 4),
            stat("done", "a.b", NEW, 1),
            stat("done", "a.b/baseline", OLD, 7),
            stat("done", "a.b/preview", NEW, 70),
            stat("done", "other.revision.a.b", OLD, 80),
            stat("done", "a.b", NOBODY, 2),
            stat("done", NOBODY, NOBODY, 6),
            *copies("a.b", completed=40, **{"500": 5, "502": 1, "503": 30, "5xx": 36}),
            *copies("a.b.c", completed=9),
            histograms=[histogram("a.b", OLD, FAST)],
        )
    )
    of_both = {OLD: Answers(16, 3, FAST, 1, 19, 2, 5, 2), NEW: Answers(11, 1, begun=11, again=6, again_failed=1)}
    assert its.counters("a.b", (OLD, NEW)) == Counters(13, of_both, 2, Copies(40, 6))
    assert its.of_baseline("a.b", OLD) == Answers(7, begun=7, refused=0), "which are the old revision's too"
    assert its.of_baseline("web", OLD) == its.of_baseline("a.b", NEW) == Answers()
    assert its.counters("web", (OLD,)) == Counters(13, {OLD: Answers()})
    assert (its.requests("a.b"), its.requests("web")) == (29, 0), "whoever answered them, previews left out"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no healthy upstream",
        b"{}",
        b'{"stats": []}',
        b'{"stats": [{"name": "server.uptime", "value": "soon"}]}',
        page(histograms=[{"name": f"rollway.first_byte.cluster.web.revision.{OLD}", "buckets": []}]),
    ],
)
def test_what_is_no_page_of_counters_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_counters(body)


def test_a_draining_replica_stays_known_outside_of_what_routes_ask_for() -> None:
    leaving = route(2, status=RouteStatus.TERMINATING, traffic=TrafficStatus.INACTIVE)
    at_a_new_one = route(3, address="10.0.0.1:8001", status=RouteStatus.TERMINATING, traffic=TrafficStatus.INACTIVE)
    (service,) = derive_table(snapshot(deployment(route(1), leaving, at_a_new_one))).services
    assert [upstream.route_id.int for upstream in service.live] == [1]
    assert [upstream.route_id.int for upstream in service.draining] == [2], "its address is a new one's"
    endpoints = whole(assignment_of("web", clusters_of(service)["web"], service))["endpoints"][0]["lb_endpoints"]
    told = [
        (endpoint["health_status"], endpoint["metadata"]["filter_metadata"]["envoy.lb"]["serving"])
        for endpoint in endpoints
    ]
    assert told == [("HEALTHY", "yes"), ("DRAINING", "no")]


def test_what_callers_got_is_added_up_by_deployment_without_those_who_asked_for_a_preview() -> None:
    its = read_counters(
        page(
            stat("done", "web", OLD, 9),
            stat("failed", "web", OLD, 2),
            stat("done", "web/canary", NEW, 4),
            stat("done", "web/canary", OLD, 1),
            stat("done", "web/preview", NEW, 50),
            stat("done", "web", NOBODY, 3),
            histograms=[histogram("web", OLD, FAST)],
        )
    ).callers()
    assert its.uptime == 13
    waited = (4, *(0 for _ in WAITED_MS))
    assert its.of == {
        ("web", OLD): Requests(8, failed=2, waited=waited),
        ("web", NEW): Requests(4),
        ("web", UUID(int=0)): Requests(failed=3),
    }
    assert "first_byte" not in callers_page([])
    assert "first_byte" in callers_page(["a.b", "web"])
