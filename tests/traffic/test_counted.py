"""What an Envoy has counted, from its page of statistics."""

import json
from itertools import accumulate
from typing import Any
from uuid import UUID

import pytest

from domain.traffic.answers import FIRST_BYTE_MS, Answers, Counters
from traffic.counted import LONGEST_MS, counted

OLD, NEW = UUID(int=1), UUID(int=2)
FAST = (3, 1, *(0 for _ in FIRST_BYTE_MS[1:]))
NOBODY = ""


def stat(kind: str, cluster: str, revision: UUID | str, value: int) -> dict[str, Any]:
    return {"name": f"rollway.{kind}.cluster.{cluster}.revision.{revision}", "value": value}


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
    its = counted(
        page(
            stat("done", "a.b", OLD, 9),
            stat("failed", "a.b", OLD, 3),
            stat("cut", "a.b", OLD, 1),
            stat("done", "a.b/next", NEW, 4),
            stat("done", "a.b", NEW, 1),
            stat("done", "a.b/preview", NEW, 70),
            stat("done", "other.revision.a.b", OLD, 80),
            stat("done", "a.b", NOBODY, 2),
            stat("done", NOBODY, NOBODY, 6),
            histograms=[histogram("a.b", OLD, FAST)],
        )
    )
    assert its.counters("a.b", (OLD, NEW)) == Counters(13, {OLD: Answers(9, 3, FAST, 1), NEW: Answers(5)}, 2)
    assert its.counters("web", (OLD,)) == Counters(13, {OLD: Answers()})


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
        counted(body)
