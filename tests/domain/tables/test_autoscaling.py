"""Autoscaling rules: a table of what fires, and what holds for any rules and any values."""

import json
import math
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.autoscaling.judging import (
    MetricSample,
    MetricValue,
    Quiet,
    Scaling,
    evaluate_rules,
    judge_rules,
    value_of_replicas,
)
from domain.autoscaling.rule import Aggregate, AutoscalingRule, Comparator
from domain.handlers.check_replica import CheckReplicaHandler
from domain.handlers.reconcile import ReconcileHandler
from domain.model import Verdict
from domain.recording import inputs_from_json, inputs_json
from tests.support.pictures import NOW, READY, SCALING, resting
from tests.support.simulation import cycle

BUSY = "requests_in_flight"
UP: dict[str, Any] = {"metric": BUSY, "comparator": ">", "threshold": 30, "step": 2, "max_replicas": 8}
DOWN: dict[str, Any] = {"metric": BUSY, "comparator": "<", "threshold": 5, "step": -1, "max_replicas": 8}


def rule(kind: dict[str, Any] = UP, **changed: Any) -> AutoscalingRule:
    return AutoscalingRule.model_validate({**kind, **changed})


def seen(of: AutoscalingRule, value: float, age: float = 1, missing: int = 0) -> MetricValue:
    return MetricValue(of.series, value, NOW - timedelta(seconds=age), missing)


def ago(seconds: float) -> Any:
    return NOW - timedelta(seconds=seconds)


def test_the_sentence_names_the_numbers_the_rule_and_the_limit() -> None:
    assert evaluate_rules([rule()], [seen(rule(), 41.5)], 3, None, NOW) == Scaling(
        5, "requests_in_flight is 41.5 > 30: from 3 to 5 replicas (at most 8)"
    )
    assert evaluate_rules([rule(DOWN)], [seen(rule(DOWN), 0)], 3, None, NOW) == Scaling(
        2, "requests_in_flight is 0 < 5: from 3 to 2 replicas (at least 1)"
    )


@pytest.mark.parametrize(
    ("kind", "value", "desired", "to"),
    [
        ({}, 31, 3, 5),
        ({}, 30, 3, None),
        ({"comparator": ">="}, 30, 3, 5),
        ({"comparator": ">="}, 29.9, 3, None),
        ({**DOWN, "comparator": "<="}, 5, 3, 2),
        ({**DOWN}, 5, 3, None),
        ({}, 31, 7, 8),
        ({}, 31, 8, None),
        ({}, 31, 20, None),
        ({"min_replicas": 4}, 31, 0, 4),
        (DOWN, 1, 1, None),
        ({**DOWN, "min_replicas": 0}, 1, 1, 0),
        (DOWN, 1, 20, 8),
        ({**DOWN, "step": -5}, 1, 3, 1),
        ({**DOWN, "min_replicas": 4}, 1, 2, None),
        ({"threshold": -2.5}, -2.4, 3, 5),
    ],
)
def test_one_rule_and_one_value(kind: Any, value: float, desired: int, to: int | None) -> None:
    one = rule(**kind)
    scaling = evaluate_rules([one], [seen(one, value)], desired, None, NOW)
    assert (scaling.desired if scaling else None) == to


@pytest.mark.parametrize(
    ("kind", "value", "last", "why"),
    [
        ({}, None, None, "requests_in_flight has no value yet"),
        ({}, {"value": math.nan}, None, "requests_in_flight is no number"),
        ({}, {"value": math.inf}, None, "requests_in_flight is no number"),
        ({}, {"value": 12}, None, "requests_in_flight is 12, not > 30"),
        (
            {},
            {"value": 50, "age": 31},
            None,
            "the value of requests_in_flight is 31 s old, at most 30 s are allowed",
        ),
        (
            {"max_age_seconds": 5},
            {"value": 50, "age": 6},
            None,
            "the value of requests_in_flight is 6 s old, at most 5 s are allowed",
        ),
        ({}, {"value": 50, "age": 9}, 9, "requests_in_flight is 50 > 30, but was measured before the last move"),
        (
            {},
            {"value": 50},
            59,
            "requests_in_flight is 50 > 30, but the cooldown runs until 12:00:01",
        ),
        (
            DOWN,
            {"value": 1, "missing": 2},
            None,
            "requests_in_flight is 1 < 5, but 2 of the replicas did not say, so none is taken away",
        ),
        (
            {"max_replicas": 3},
            {"value": 50},
            None,
            "requests_in_flight is 50 > 30, but there are 3 replicas already (at most 3)",
        ),
        (
            {"aggregate": "max", "labels": {"queue": "gpu"}},
            {"value": 1},
            None,
            'max of requests_in_flight{queue="gpu"} is 1, not > 30',
        ),
    ],
)
def test_a_quiet_rule_says_why(kind: Any, value: Any, last: float | None, why: str) -> None:
    one = rule(**kind)
    metrics = [seen(one, **value)] if value else []
    (quiet,) = judge_rules([one], metrics, 3, ago(last) if last is not None else None, NOW)
    assert isinstance(quiet, Quiet)
    assert quiet.reason == why


def test_a_value_may_be_as_old_as_is_allowed_and_not_older() -> None:
    assert evaluate_rules([rule()], [seen(rule(), 50, age=30)], 3, None, NOW)
    assert not evaluate_rules([rule()], [seen(rule(), 50, age=30.001)], 3, None, NOW)


def test_the_cooldown_counts_from_the_last_move_and_its_end_is_known() -> None:
    values = [seen(rule(), 50)]
    assert evaluate_rules([rule()], values, 3, ago(60), NOW)
    (quiet,) = judge_rules([rule()], values, 3, ago(59), NOW)
    assert isinstance(quiet, Quiet)
    assert quiet.until == NOW + timedelta(seconds=1)


def test_each_rule_waits_for_its_own_cooldown_after_whichever_move() -> None:
    slow, quick = rule(cooldown_seconds=600), rule(cooldown_seconds=10, step=1)
    scaling = evaluate_rules([slow, quick], [seen(slow, 50)], 3, ago(60), NOW)
    assert scaling is not None
    assert scaling.desired == 4


def test_replicas_that_did_not_say_hold_back_fewer_replicas_but_not_more() -> None:
    assert evaluate_rules([rule()], [seen(rule(), 50, missing=2)], 3, None, NOW)
    assert not evaluate_rules([rule(DOWN)], [seen(rule(DOWN), 1, missing=1)], 3, None, NOW)


def test_the_first_rule_that_fires_wins_and_one_that_changes_nothing_does_not_fire() -> None:
    full, queue = rule(max_replicas=3), rule(metric="queue", source="pushed", step=1)
    values = [seen(full, 50), seen(queue, 50)]
    scaling = evaluate_rules([full, queue, rule()], values, 3, None, NOW)
    assert scaling is not None
    assert scaling.reason == "queue is 50 > 30: from 3 to 4 replicas (at most 8)"


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
    ]
    assert len({one.series for one in others}) == len(others)
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
    one = rule(aggregate=how)
    assert value_of_replicas(one, [samples(1), samples(2), samples(3)], NOW) == MetricValue(one.series, value, NOW)


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
    assert value_of_replicas(rule(), [samples(1e308, 1e308)], NOW) is None


def test_a_rule_that_fires_leads_to_scaling_with_the_new_count() -> None:
    one = cycle(resting("■■■", 3, READY, rules=(rule(),), metrics=(seen(rule(), 41.5),)), NOW)
    assert (one.verdict, one.to, one.desired_replicas, one.due_at) == (Verdict.SUCCESS, SCALING, 5, NOW)
    assert one.reason == "requests_in_flight is 41.5 > 30: from 3 to 5 replicas (at most 8)"
    assert not one.changes


def test_a_quiet_rule_is_told_and_looked_at_again() -> None:
    quiet = resting("■■■", 3, READY, rules=(rule(), rule(DOWN)), metrics=(seen(rule(), 12),))
    one = cycle(quiet, NOW)
    assert (one.verdict, one.desired_replicas) == (Verdict.SKIPPED, 3)
    assert one.reason == (
        "3 of 3 replicas are healthy; requests_in_flight is 12, not > 30; requests_in_flight is 12, not < 5"
    )
    assert one.due_at == NOW + timedelta(seconds=30)


def test_a_rule_that_cools_down_is_looked_at_when_it_may_fire() -> None:
    cooling = resting("■■■", 3, READY, rules=(rule(),), metrics=(seen(rule(), 50),), last_autoscaled_at=ago(50))
    assert cycle(cooling, NOW).due_at == NOW + timedelta(seconds=10)


def test_what_is_off_is_put_right_before_any_rule_is_asked() -> None:
    one = cycle(resting("■■", 3, READY, rules=(rule(),), metrics=(seen(rule(), 50),)), NOW)
    assert (one.to, one.desired_replicas) == (SCALING, 3)


def test_replicas_that_fall_ill_under_the_load_do_not_hold_back_a_rule() -> None:
    one = cycle(resting("■■▲", 3, READY, status_for=5, rules=(rule(),), metrics=(seen(rule(), 50),)), NOW)
    assert (one.to, one.desired_replicas) == (SCALING, 5)


def test_what_was_given_up_is_not_autoscaled_before_it_may_be_tried_again() -> None:
    given_up = resting(
        "■", 3, READY, rules=(rule(),), metrics=(seen(rule(), 50),), degraded_reason="x", retry_at=ago(-60)
    )
    one = cycle(given_up, NOW)
    assert (one.to, one.desired_replicas, one.due_at) == (READY, 3, ago(-60))


def test_only_check_replica_asks_the_rules() -> None:
    ready = resting("■■■", 3, READY, rules=(rule(),), metrics=(seen(rule(), 50),))
    assert cycle(ready, NOW, CheckReplicaHandler()).desired_replicas == 5
    assert cycle(ready, NOW, ReconcileHandler()).desired_replicas == 3
    assert cycle(replace(ready, status=SCALING), NOW).desired_replicas == 3


def test_a_snapshot_with_rules_survives_json() -> None:
    ready = resting("■■■", 3, READY, rules=(rule(labels={"a": "b"}),), metrics=(seen(rule(), 50),))
    stored = json.loads(inputs_json(ready, NOW))
    assert inputs_from_json(stored) == (ready, NOW)
    without = {key: value for key, value in stored["deployment"].items() if key not in NEW}
    assert inputs_from_json({"deployment": without, "now": NOW})[0] == replace(ready, rules=(), metrics=())


NEW = {"rules", "metrics", "last_autoscaled_at"}


NUMBERS = st.one_of(st.sampled_from([0.0, 1.0, 5.0, 30.0]), st.floats(-100, 100))
MEASURED = st.one_of(NUMBERS, st.sampled_from([math.nan, math.inf, -math.inf]))
NAMES = st.sampled_from(["a", "b"])


@st.composite
def rules_of(draw: st.DrawFn) -> AutoscalingRule:
    low = draw(st.integers(0, 10))
    return AutoscalingRule(
        metric=draw(NAMES),
        comparator=draw(st.sampled_from(Comparator)),
        aggregate=draw(st.sampled_from([Aggregate.AVG, Aggregate.MAX])),
        threshold=draw(NUMBERS),
        step=draw(st.integers(-12, 12).filter(bool)),
        min_replicas=low,
        max_replicas=draw(st.integers(low, 12)),
        cooldown_seconds=draw(st.sampled_from([0, 1, 10, 60])),
        max_age_seconds=draw(st.sampled_from([1, 30])),
    )


@st.composite
def values_for(draw: st.DrawFn, rules: list[AutoscalingRule]) -> list[MetricValue]:
    return [
        MetricValue(series, draw(MEASURED), ago(draw(st.integers(0, 40))), draw(st.integers(0, 2)))
        for series in draw(st.sets(st.sampled_from(sorted({one.series for one in rules}))))
    ]


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[AutoscalingRule], list[MetricValue], int, Any]:
    rules = draw(st.lists(rules_of(), min_size=1, max_size=4))
    last = draw(st.none() | st.integers(0, 70).map(ago))
    return rules, draw(values_for(rules)), draw(st.integers(0, 20)), last


@given(situations())
def test_a_move_goes_the_rules_way_ends_within_its_limits_and_is_for_a_finite_fresh_value(situation: Any) -> None:
    rules, values, desired, last = situation
    judged = judge_rules(rules, values, desired, last, NOW)
    known = {value.series: value for value in values}
    for one, said in zip(rules, judged, strict=True):
        assert "nan" not in said.reason
        if isinstance(said, Quiet):
            continue
        assert one.min_replicas <= said.desired <= one.max_replicas
        assert (said.desired - desired) * one.step > 0
        value = known[one.series]
        assert math.isfinite(value.value)
        assert (NOW - value.at).total_seconds() <= one.max_age_seconds
        assert one.step > 0 or not value.missing
        assert last is None or value.at > last


@given(situations())
def test_the_same_situation_always_gives_the_first_move_of_all(situation: Any) -> None:
    rules, values, desired, last = situation
    moves = [one for one in judge_rules(rules, values, desired, last, NOW) if isinstance(one, Scaling)]
    for _ in range(2):
        assert evaluate_rules(rules, reversed(values), desired, last, NOW) == next(iter(moves), None)


@given(situations(), st.lists(st.tuples(st.integers(0, 20), MEASURED), min_size=1, max_size=30))
def test_never_are_there_two_moves_within_a_cooldown(situation: Any, measured: Any) -> None:
    """The clock goes on, each rule reads the same number, and every move is applied."""
    rules, _, desired, last = situation
    now = NOW
    for seconds, number in measured:
        now += timedelta(seconds=seconds)
        values = [MetricValue(one.series, number, now) for one in rules]
        scaling = evaluate_rules(rules, values, desired, last, now)
        if scaling is None:
            continue
        by = rules[judge_rules(rules, values, desired, last, now).index(scaling)]
        assert last is None or (now - last).total_seconds() >= by.cooldown_seconds
        assert last is None or now > last
        desired, last = scaling.desired, now


@given(rules_of(), st.integers(0, 20), st.integers(1, 200))
def test_a_rule_alone_comes_to_rest_at_its_limit(one: AutoscalingRule, desired: int, most: int) -> None:
    """Under one and the same load the count never goes to and fro."""
    one = one.model_copy(update={"comparator": Comparator.ABOVE, "threshold": 0.0})
    counts, last, now = [desired], None, NOW
    for _ in range(most):
        now += timedelta(seconds=61)
        scaling = evaluate_rules([one], [MetricValue(one.series, 1, now)], counts[-1], last, now)
        if scaling is None:
            break
        counts.append(scaling.desired)
        last = now
    assert counts in (sorted(counts), sorted(counts, reverse=True))
    assert len(set(counts)) == len(counts)
