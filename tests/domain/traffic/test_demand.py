"""What is asked of a deployment, from looks at its proxies drawn as rows."""

from uuid import UUID

import pytest

from domain.autoscaling.rule import MetricValue, ProxyMetric
from domain.autoscaling.scaling_decision import (
    WINDOW_SECONDS,
    DemandLook,
    DemandSeries,
    Shown,
    value_of_demand,
    with_look,
)
from tests.support.pictures.pictures import NOW


def series(metric: ProxyMetric, *, serving: int = 1, is_per_replica: bool = False) -> DemandSeries:
    return DemandSeries(UUID(int=1), "web", serving, "of proxies", metric, is_per_replica)


def looks(**drawn: str) -> tuple[DemandLook, ...]:
    """By node a look every 2 s: uptime:requests:under_way, or - where it did not tell."""
    found: tuple[DemandLook, ...] = ()
    for number, cells in enumerate(zip(*(row.split() for row in drawn.values()), strict=True)):
        shown = {
            node: Shown(*map(int, cell.split(":"))) for node, cell in zip(drawn, cells, strict=True) if cell != "-"
        }
        found = with_look(found, DemandLook(2.0 * number, frozenset(drawn), shown))
    return found


@pytest.mark.parametrize(
    ("drawn", "requests_per_second", "under_way", "silent"),
    [
        ({"a": "1:10:2"}, None, 2, ["a"]),
        ({"a": "1:10:2 3:30:4"}, 10, 3, []),
        ({"a": "1:10:0 3:10:0"}, 0, 0, []),
        ({"a": "3:10:2 3:30:4"}, 10, 3, []),  # a look that waited for its answer: no second has passed there
        ({"a": "1:0:0 3:20:0 5:20:0"}, 5, 0, []),
        ({"a": "1:10:2 3:30:4", "b": "7:0:1 9:2:1"}, 11, 4, []),
        ({"a": "1:10:2 3:30:4", "b": "9:900:9 -"}, 10, 3, ["b"]),
        ({"a": "1:10:2 3:30:4", "b": "- -"}, 10, 3, ["b"]),
        ({"a": "1:10:2 3:30:4", "b": "- 3:900:5"}, 10, 8, ["b"]),
        ({"a": "1:10:2 - 5:30:4"}, None, 4, ["a"]),
        ({"a": "1:10:2 - 5:30:4 7:40:4"}, 5, 4, []),
        ({"a": "60:900:2 1:3:0"}, None, 0, ["a"]),
        ({"a": "60:900:2 1:3:0 3:9:0"}, 3, 0, []),
        ({"a": "60:900:2 62:3:0"}, None, 0, ["a"]),
        ({"a": "60:5:2 1:9:0"}, None, 0, ["a"]),
        ({"a": "- -"}, None, None, ["a"]),
    ],
)
def test_numbers_of_all_proxies_are_added_up_and_those_that_are_not_known_are_named(
    drawn: dict[str, str], requests_per_second: float | None, under_way: float | None, silent: list[str]
) -> None:
    told, busy = (value_of_demand(series(metric), looks(**drawn), NOW) for metric in ProxyMetric)
    assert (told.value if told else None) == requests_per_second
    assert (busy.value if busy else None) == under_way
    if told:
        assert told == MetricValue("of proxies", told.value, NOW, len(silent), len(drawn), tuple(silent))


@pytest.mark.parametrize(("serving", "each"), [(4, 5), (1, 20), (0, 20)])
def test_the_number_of_each_replica_is_a_share_and_where_none_serves_the_whole(serving: int, each: float) -> None:
    drawn = looks(a="1:0:0 3:40:0")
    value = value_of_demand(series(ProxyMetric.REQUESTS_PER_SECOND, serving=serving, is_per_replica=True), drawn, NOW)
    assert value is not None
    assert value.value == each


def test_without_a_proxy_there_is_no_value() -> None:
    assert value_of_demand(series(ProxyMetric.ANSWERS_UNDER_WAY), (DemandLook(0, (), {}),), NOW) is None


def test_proxies_that_should_tell_are_those_of_the_newest_look() -> None:
    """Between two looks edge-1 went and edge-3 came."""
    shown = {node: Shown(1, 0, 4) for node in ("edge-1", "edge-2")}
    two = (DemandLook(0, ("edge-1", "edge-2"), shown), DemandLook(2, ("edge-2", "edge-3"), shown))
    value = value_of_demand(series(ProxyMetric.ANSWERS_UNDER_WAY), two, NOW)
    assert value == MetricValue("of proxies", 4, NOW, 1, 2, ("edge-3",))


def test_what_was_longer_ago_is_forgotten() -> None:
    found: tuple[DemandLook, ...] = ()
    for seconds in (0.0, 1.0, WINDOW_SECONDS, WINDOW_SECONDS + 1, WINDOW_SECONDS + 1):
        found = with_look(found, DemandLook(seconds, (), {}))
    assert [look.seconds for look in found] == [1, WINDOW_SECONDS, WINDOW_SECONDS + 1]
