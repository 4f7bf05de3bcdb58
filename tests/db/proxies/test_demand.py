"""What proxies are asked for autoscaling, and a value that they told, as check_replica acts on it and says it."""

from functools import partial
from typing import Any

import pytest
from sqlalchemy import Engine

from db.commands.autoscaling import store_and_mark, watched_deployments
from db.connection.transactions import in_transaction
from db.cycle.autoscaling_rules import store_values
from db.proxies.acks import SeenProxy, note_proxies, note_publisher
from db.proxies.proxy_reports import Demanded, demanded
from domain.autoscaling.rule import MetricValue, ProxyMetric
from domain.autoscaling.scaling_decision import DemandSeries
from tests.support.pictures.autoscaling import UP as PUSHED
from tests.support.pictures.autoscaling import check, is_marked, ruled
from tests.support.rows.deployments import ask, make_deployment, mark, read, write

UP: dict[str, Any] = {
    "metric": "requests_per_second",
    "source": "proxy",
    "comparator": ">",
    "threshold": 30,
    "step": 2,
    "max_replicas": 8,
}
DOWN: dict[str, Any] = {**UP, "comparator": "<", "threshold": 5, "step": -1}
BUSY: dict[str, Any] = {**UP, "metric": "answers_under_way", "aggregate": "sum"}
IS = "requests_per_second is"
HELD_BACK = "as 3 of 4 proxies told, but edge-2 did not say, so no replica is taken away"
SERIES = "avg(requests_per_second) of proxies"


def found(engine: Engine) -> Demanded:
    known = in_transaction(engine, demanded)
    assert known is not None
    return known


def tell(engine: Engine, made: Any, value: float, silent: tuple[str, ...] = ()) -> int:
    now = found(engine).now
    told = MetricValue(SERIES, value, now, len(silent), 4, silent)
    return in_transaction(engine, partial(store_values, values=[(made.id, told)]))


def test_nothing_is_asked_where_no_rule_reads_it(engine: Engine) -> None:
    make_deployment(engine, name="without")
    ruled(engine, PUSHED)
    assert in_transaction(engine, demanded) is None


def test_each_series_is_asked_for_once_with_how_many_replicas_serve(engine: Engine) -> None:
    made = ruled(engine, UP, DOWN, BUSY, PUSHED, picture="■■▲□◇")
    gone = ruled(engine, UP, name="gone")
    write(engine, "UPDATE deployments SET lifecycle = 'destroyed' WHERE id = %s", gone.id)
    assert found(engine).series == [
        DemandSeries(made.id, "web", 2, SERIES, ProxyMetric.REQUESTS_PER_SECOND, is_per_replica=True),
        DemandSeries(
            made.id,
            "web",
            2,
            "sum(answers_under_way) of proxies",
            ProxyMetric.ANSWERS_UNDER_WAY,
            is_per_replica=False,
        ),
    ]


def test_what_a_newer_release_reads_of_proxies_is_left_to_it(engine: Engine) -> None:
    ruled(engine, UP, BUSY, DOWN)
    write(engine, "UPDATE autoscaling_rules SET metric = 'bytes_per_second' WHERE position = 0")
    write(engine, "UPDATE autoscaling_rules SET aggregate = 'max' WHERE position = 1")
    assert [series.series for series in found(engine).series] == [SERIES]


def test_a_proxy_that_may_still_send_requests_is_expected_to_tell_and_only_who_lives_is_asked(engine: Engine) -> None:
    ruled(engine, UP)
    assert found(engine)[1:3] == ([], frozenset())
    in_transaction(engine, partial(note_publisher, publisher_id="server"))
    doubled = SeenProxy("doubled", "envoy", 10, is_doubled=True, stats_address="10.0.0.3:9902")
    proxies = [
        SeenProxy("edge", "envoy", 10, stats_address="10.0.0.1:9902"),
        SeenProxy("mute", "traefik", 10),
        SeenProxy("late", "envoy", 10, stats_address="10.0.0.2:9902"),
        SeenProxy("old", "envoy", 10, stats_address="10.0.0.4:9902"),
        doubled,
    ]
    in_transaction(engine, partial(note_proxies, proxies=proxies))
    silent = "UPDATE proxies SET last_seen_at = clock_timestamp() - %s * interval '1 minute' WHERE node_id = %s"
    write(engine, silent, 2, "late")
    write(engine, silent, 11, "old")
    known = found(engine)
    assert known.proxies == [("edge", "10.0.0.1:9902", False), ("mute", None, False)]
    assert known.expected == {"edge", "mute", "late", "doubled"}


@pytest.mark.parametrize(
    ("value", "silent", "desired", "said"),
    [
        (41.5, (), 5, "requests_per_second is 41.5 > 30, as 4 of 4 proxies told: from 3 to 5 replicas (at most 8)"),
        (1, (), 2, "requests_per_second is 1 < 5, as 4 of 4 proxies told: from 3 to 2 replicas (at least 1)"),
        (
            1,
            ("edge-2",),
            3,
            f"3 of 3 replicas healthy; {IS} 1, not > 30, as 3 of 4 proxies told; {IS} 1 < 5, {HELD_BACK}",
        ),
    ],
)
def test_what_proxies_told_moves_the_count_and_is_said(
    engine: Engine, value: float, silent: tuple[str, ...], desired: int, said: str
) -> None:
    made = ruled(engine, UP, DOWN)
    assert tell(engine, made, value, silent) == 1
    (watched,), now = in_transaction(engine, watched_deployments)
    assert watched.fires([], now) == (desired != 3)
    in_transaction(engine, partial(store_and_mark, by_deployment={}, fires=[made.id] if watched.fires([], now) else []))
    assert is_marked(engine) == (desired != 3)
    mark(engine, made.id)
    check(engine)
    assert read(engine, "SELECT desired_replicas, reason FROM deployments") == [
        {"desired_replicas": desired, "reason": said}
    ]


def test_a_value_is_one_row_that_goes_with_its_rule(engine: Engine) -> None:
    made = ruled(engine, UP)
    assert [tell(engine, made, value) for value in (1, 2, 3)] == [1, 1, 1]
    assert read(engine, "SELECT value FROM metric_values") == [{"value": 3}]
    ask(engine, "set_autoscaling_rules", deployment="web", rules=[PUSHED])
    assert read(engine, "SELECT FROM metric_values") == []
    assert in_transaction(engine, demanded) is None
