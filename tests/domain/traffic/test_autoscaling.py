"""Which rule fires, where it leads, and why a quiet one is quiet."""

import math
from datetime import timedelta
from typing import Any

import pytest

from domain.autoscaling.rule import MetricValue
from domain.autoscaling.scaling_decision import Quiet, Scaling, evaluate_rules, judge_rules
from tests.support.pictures.autoscaling_rules import DOWN, UP, ago, rule, seen
from tests.support.pictures.pictures import NOW


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
    autoscaling_rule = rule(**kind)
    scaling = evaluate_rules([autoscaling_rule], [seen(autoscaling_rule, value)], desired, None, NOW)
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
    autoscaling_rule = rule(**kind)
    metrics = [seen(autoscaling_rule, **value)] if value else []
    (quiet,) = judge_rules([autoscaling_rule], metrics, 3, ago(last) if last is not None else None, NOW)
    assert isinstance(quiet, Quiet)
    assert quiet.reason == why


HELD_BACK = "did not say, so no replica is taken away"
PROXY: dict[str, Any] = {"metric": "requests_per_second", "source": "proxy"}


@pytest.mark.parametrize(
    ("kind", "told", "why"),
    [
        (PROXY, None, "requests_per_second has no value yet: no proxy has told it"),
        (PROXY, (12, 4, ()), "requests_per_second is 12, not > 30, as 4 of 4 proxies told"),
        (PROXY, (12, 1, ()), "requests_per_second is 12, not > 30, as the one proxy told"),
        (
            {**DOWN, **PROXY, "aggregate": "sum"},
            (1.5, 4, ("edge-2",)),
            f"sum of requests_per_second is 1.5 < 5, as 3 of 4 proxies told, but edge-2 {HELD_BACK}",
        ),
        *(
            (
                {**DOWN, **PROXY},
                (0, 5, tuple("abcd")[:silent]),
                f"requests_per_second is 0 < 5, as {5 - silent} of 5 proxies told, but {names} {HELD_BACK}",
            )
            for silent, names in ((3, "a, b, c"), (4, "a, b, c and 1 more"))
        ),
        (
            {**DOWN, **PROXY, "metric": "answers_under_way"},
            (0, 6, ("a", "b", "c", "d", "e")),
            f"answers_under_way is 0 < 5, as 1 of 6 proxies told, but a, b, c and 2 more {HELD_BACK}",
        ),
    ],
)
def test_what_proxies_tell_is_said_with_how_many_did_and_who_did_not(kind: Any, told: Any, why: str) -> None:
    proxy_rule = rule({**UP, **kind})
    value, proxies, silent = told or (0, 0, ())
    metrics = [MetricValue(proxy_rule.series, value, ago(1), len(silent), proxies, silent)] if told else []
    (quiet,) = judge_rules([proxy_rule], metrics, 3, None, NOW)
    assert isinstance(quiet, Quiet)
    assert quiet.reason == why


def test_a_silent_proxy_holds_back_no_further_replica() -> None:
    up = rule({**UP, **PROXY})
    scaling = evaluate_rules([up], [MetricValue(up.series, 31, ago(1), 1, 2, ("edge-2",))], 3, None, NOW)
    assert scaling is not None
    assert scaling.reason == (
        "requests_per_second is 31 > 30, as 1 of 2 proxies told: from 3 to 5 replicas (at most 8)"
    )


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
