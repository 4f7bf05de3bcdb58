"""What a rule may say, and the one value that it reads from all replicas."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from domain.autoscaling.rule import MetricValue
from domain.autoscaling.scaling_decision import MetricSample, value_of_replicas
from tests.support.pictures.autoscaling_rules import BUSY, DOWN, rule
from tests.support.pictures.pictures import NOW

PROXY = {"metric": "requests_per_second", "source": "proxy"}


def test_rules_share_a_series_exactly_when_they_read_the_same() -> None:
    assert rule().series == rule(DOWN).series == "avg(requests_in_flight) at /metrics"
    assert rule(metric="q", source="pushed").series == "q"
    others = [
        rule(),
        rule(aggregate="max"),
        rule(path="/m"),
        rule(labels={"a": "b"}),
        rule(labels={"a": 'b",c="d'}),
        rule(labels={"a": "b", "c": "d"}),
        rule(source="pushed"),
        rule(metric="requests_per_second"),
        rule(metric="requests_per_second", source="pushed"),
        rule(metric="requests_per_second", source="proxy"),
        rule(metric="requests_per_second", source="proxy", aggregate="sum"),
        rule(metric="answers_under_way", source="proxy"),
    ]
    assert len({other.series for other in others}) == len(others)
    assert rule(labels={"a": "1", "b": "2"}).series == rule(labels={"b": "2", "a": "1"}).series


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"step": 0}, "step must not be 0"),
        ({"step": 1.5}, "step"),
        ({"step": True}, "step"),
        ({"threshold": math.nan}, "threshold"),
        ({"threshold": math.inf}, "threshold"),
        ({"threshold": 10**400}, "threshold"),
        ({"threshold": "30"}, "threshold"),
        ({"min_replicas": 9}, r"min_replicas \(9\) must be at most max_replicas \(8\)"),
        ({"min_replicas": -1}, "min_replicas"),
        ({"max_replicas": 10_001}, "max_replicas"),
        ({"comparator": "=="}, "comparator"),
        ({"aggregate": "median"}, "aggregate"),
        ({"metric": "up rate"}, "metric"),
        ({"metric": ""}, "metric"),
        ({"path": "metrics"}, "path"),
        ({"path": "/a b"}, "path"),
        ({"cooldown_seconds": -1}, "cooldown_seconds"),
        ({"max_age_seconds": 0}, "max_age_seconds"),
        ({"source": "pushed", "aggregate": "sum"}, "path, labels and aggregate are for source 'replicas'"),
        ({"source": "pushed", "labels": {"a": "b"}}, "path, labels and aggregate are for source 'replicas'"),
        ({"source": "proxy"}, "metric must be requests_per_second or answers_under_way where source is 'proxy'"),
        ({**PROXY, "path": "/m"}, "path and labels are for source 'replicas'; proxies tell of the deployment"),
        ({**PROXY, "labels": {"a": "b"}}, "path and labels are for source 'replicas'"),
        ({**PROXY, "aggregate": "max"}, "aggregate must be avg, for each replica, or sum, of all, where source is"),
        ({"source": "proxies"}, "source"),
        ({"labels": {"a": "\0"}}, "labels"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(wrong: Any, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        rule(**wrong)


def samples(*values: float, metric: str = BUSY, **labels: str) -> list[MetricSample]:
    return [MetricSample(metric, labels, value) for value in values]


@pytest.mark.parametrize(("how", "value"), [("avg", 2), ("sum", 6), ("max", 3), ("min", 1)])
def test_the_values_of_the_replicas_become_one(how: str, value: float) -> None:
    autoscaling_rule = rule(aggregate=how)
    assert value_of_replicas(autoscaling_rule, [samples(1), samples(2), samples(3)], NOW) == MetricValue(
        autoscaling_rule.series, value, NOW
    )


def test_a_replicas_value_is_the_sum_of_what_is_meant() -> None:
    page = [*samples(1, queue="cpu"), *samples(2, queue="gpu", zone="a"), *samples(4, queue="gpu", zone="b")]
    page += samples(100, metric="other", queue="gpu")
    of_all, of_gpu = rule(), rule(labels={"queue": "gpu"})
    assert value_of_replicas(of_all, [page], NOW) == MetricValue(of_all.series, 7, NOW)
    assert value_of_replicas(of_gpu, [page], NOW) == MetricValue(of_gpu.series, 6, NOW)


def test_what_is_no_number_is_not_counted_and_replicas_without_a_value_are_missing() -> None:
    pages = [samples(math.nan, 4), samples(math.nan), samples(math.inf), [], samples(2)]
    assert value_of_replicas(rule(), pages, NOW) == MetricValue(rule().series, 3, NOW, missing=3)
    assert value_of_replicas(rule(), [samples(math.nan), []], NOW) is None
    assert value_of_replicas(rule(), [], NOW) is None
    assert value_of_replicas(rule(aggregate="sum"), [samples(1e308), samples(1e308)], NOW) is None
    too_much = samples(1e308, 1e308)
    assert value_of_replicas(rule(), [too_much], NOW) is None
    assert value_of_replicas(rule(), [too_much, samples(2)], NOW) == MetricValue(rule().series, 2, NOW, missing=1)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ({}, "requests_in_flight > 30: +2 (1 to 8)"),
        ({"step": -1, "comparator": "<="}, "requests_in_flight <= 30: -1 (1 to 8)"),
        ({"aggregate": "max", "labels": {"queue": "gpu"}}, 'max of requests_in_flight{queue="gpu"} > 30: +2 (1 to 8)'),
    ],
)
def test_a_rule_in_words(kind: dict[str, Any], words: str) -> None:
    assert str(rule(**kind)) == words
