"""Policies: what is accepted, what is refused in which words, and percents in integers."""

from dataclasses import replace
from typing import Any

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import guard_of
from domain.strategies.budget import Budget, resting_budget, rounded_down, rounded_up, surge_budget
from domain.strategies.builtin import STRATEGIES, parse_policy, stored_policy
from domain.strategies.rolling_update import RollingUpdateSpec
from domain.text.errors import InvalidInputError
from tests.support.pictures.pictures import deploying, resting

AMOUNT = 'must be a whole number of replicas from 0 to 10000, or a whole percent from "0%" to "1000%"'


def with_spec(**spec: Any) -> dict[str, Any]:
    return {"strategy": "rolling_update", "spec": spec}


@pytest.mark.parametrize("amount", [0, 1, 3, 10_000, "0%", "7%", "25%", "100%", "1000%"])
def test_an_amount_is_a_number_or_a_percent(amount: int | str) -> None:
    spec = parse_policy(with_spec(max_surge=amount, max_unavailable=1)).spec
    assert isinstance(spec, RollingUpdateSpec)
    assert spec.max_surge == amount


@pytest.mark.parametrize("field", ["max_surge", "max_unavailable"])
@pytest.mark.parametrize(
    "amount",
    [-1, 10_001, 2.5, 1.0, True, None, "25", "", "%", "-1%", "2.5%", " 25%", "25 %", "+25%", "٢٥%", "1001%", "a%", []],
)
def test_anything_else_is_refused_naming_the_field_and_what_is_right(field: str, amount: object) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_policy(with_spec(**{field: amount}))
    assert refused.value.message == f"policy.spec.{field}: {AMOUNT}"
    assert refused.value.as_json()["detail"] == {"field": f"policy.spec.{field}"}


@pytest.mark.parametrize("surge", ["9" * 5000 + "%", "9" * 20 + "%"], ids=len)
def test_a_percent_that_python_itself_refuses_to_read_is_refused_in_the_same_words(surge: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_policy(with_spec(max_surge=surge))
    assert refused.value.message == f"policy.spec.max_surge: {AMOUNT}"


@pytest.mark.parametrize("surge", [0, "0%", "00%"])
@pytest.mark.parametrize("unavailable", [0, "0%"])
def test_a_literal_0_and_0_is_refused(surge: int | str, unavailable: int | str) -> None:
    with pytest.raises(InvalidInputError, match=r"cannot both be 0.*set one of them to 1"):
        parse_policy(with_spec(max_surge=surge, max_unavailable=unavailable))
    with pytest.raises(InvalidInputError, match=r"undo_max_surge and max_unavailable cannot both be 0"):
        parse_policy(with_spec(max_surge=1, undo_max_surge=surge, max_unavailable=unavailable))


@pytest.mark.parametrize(
    ("raw", "field", "right"),
    [
        (None, "policy", ""),
        ([], "policy", ""),
        ({}, "policy.strategy", "missing"),
        ({"strategy": "bluegreen"}, "policy.strategy", "rolling_update"),
        ({"strategy": "rolling_update", "specs": {}}, "policy.specs", ""),
        (with_spec(surge=1), "policy.spec.surge", ""),
        (with_spec(pacing="fast"), "policy.spec.pacing", "'wave' or 'continuous'"),
        (with_spec(min_ready_seconds=-1), "policy.spec.min_ready_seconds", "at least 0"),
        (with_spec(min_ready_seconds=float("nan")), "policy.spec.min_ready_seconds", ""),
        ({"strategy": "rolling_update", "limits": {"timeout_seconds": 0}}, "policy.limits.timeout_seconds", "than 0"),
        (
            {"strategy": "rolling_update", "limits": {"progress_timeout_seconds": -5}},
            "policy.limits.progress_timeout_seconds",
            "more than 0",
        ),
        ({"strategy": "rolling_update", "limits": {"failure_budget": 0}}, "policy.limits.failure_budget", "at least 1"),
    ],
)
def test_each_error_names_the_field_and_what_is_right(raw: object, field: str, right: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_policy(raw)
    assert refused.value.detail["field"] == field
    assert field in refused.value.message
    assert right in refused.value.message


def test_two_faults_are_both_named() -> None:
    with pytest.raises(InvalidInputError) as refused:
        parse_policy(with_spec(max_surge=-1, pacing="fast"))
    assert "policy.spec.max_surge" in refused.value.message
    assert "policy.spec.pacing" in refused.value.message


def test_a_policy_reads_back_from_its_json() -> None:
    policy = parse_policy(
        {
            "strategy": "rolling_update",
            "spec": {"max_surge": "29%", "max_unavailable": 0, "pacing": "continuous", "min_ready_seconds": 1.5},
            "limits": {"timeout_seconds": 60, "progress_timeout_seconds": 5, "failure_budget": 7},
        }
    )
    assert parse_policy(policy.as_json()) == policy


@pytest.mark.parametrize(
    ("percent", "n", "up", "down"),
    [
        ("29%", 100, 29, 29),
        ("7%", 100, 7, 7),
        ("25%", 4, 1, 1),
        ("25%", 10, 3, 2),
        ("25%", 1, 1, 0),
        ("25%", 0, 0, 0),
        ("100%", 7, 7, 7),
        ("1%", 1, 1, 0),
        ("33%", 3, 1, 0),
        ("1000%", 3, 30, 30),
    ],
)
def test_trap_percents_are_integers_surge_up_unavailable_down(percent: str, n: int, up: int, down: int) -> None:
    assert (rounded_up(percent, n), rounded_down(percent, n)) == (up, down)


def test_trap_every_percent_of_100_is_itself() -> None:
    for percent in range(101):
        assert rounded_up(f"{percent}%", 100) == rounded_down(f"{percent}%", 100) == percent


@pytest.mark.parametrize(
    ("n", "s", "u", "ceiling", "keep"),
    [
        (3, 1, 1, 4, 2),
        (3, 0, 1, 3, 2),
        (3, 1, 0, 4, 3),
        (3, 1, 5, 4, 1),
        (3, 0, 3, 3, 1),
        (1, 1, 1, 2, 1),
        (1, 0, 1, 1, 0),
        (4, "25%", "25%", 5, 3),
        (10, "25%", "25%", 13, 8),
        (1, "0%", "25%", 1, 0),
        (1, "25%", "25%", 2, 1),
        (3, "0%", "33%", 3, 2),
        (0, 1, 1, 1, 0),
        (0, "25%", "25%", 0, 0),
    ],
)
def test_the_budget_of_a_rolling_update(n: int, s: int | str, u: int | str, ceiling: int, keep: int) -> None:
    assert replace(surge_budget(n, s, u), keep_in_place=None) == Budget(n, ceiling, keep)


@pytest.mark.parametrize(("n", "u", "in_place"), [(4, 1, 3), (4, 0, 4), (2, 2, 1), (1, 1, 0), (1, 0, 1), (0, 1, 0)])
def test_in_place_the_last_replica_leaves_only_where_it_is_the_only_one(n: int, u: int, in_place: int) -> None:
    assert surge_budget(n, 1, u).keep_in_place == in_place


def test_outside_a_rollout_one_more_and_none_less() -> None:
    assert resting_budget(3) == Budget(3, 4, 3)
    assert resting_budget(3, count_stopping=True) == Budget(3, 4, 3, count_stopping=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_counts_what_is_stopping_if_it_is_told_to(strategy: str) -> None:
    policy = parse_policy({"strategy": strategy, "spec": {"count_stopping": True}})
    assert EVALUATOR.budget(deploying("■■■|", policy=policy)).count_stopping


def test_settings_that_this_release_cannot_read_still_say_whether_stopping_replicas_count() -> None:
    for count_stopping in (True, False):
        spec = {"max_surge": 1, "colour": "green", "count_stopping": count_stopping}
        policy = stored_policy({"strategy": "rolling_update", "spec": spec, "limits": {}})
        assert EVALUATOR.budget(deploying("■■■|", policy=policy)) == Budget(3, 4, 3, count_stopping)


@pytest.mark.parametrize(
    ("n", "before", "with_revision", "s", "u", "ceiling", "keep"),
    [
        (3, 3, None, 1, 0, 4, 3),
        (5, 3, 5, 1, 0, 6, 3),
        (3, 5, 3, 1, 0, 6, 3),
        (8, 4, 8, "25%", "25%", 10, 3),
        (0, 3, 0, 1, 0, 4, 0),
    ],
)
def test_postgres_holds_a_rollout_to_the_widest_of_the_way_there_and_the_way_back(
    n: int, before: int, with_revision: int | None, s: int | str, u: int | str, ceiling: int, keep: int
) -> None:
    sizes = {"desired_at_start": before, "desired_with_revision": with_revision}
    guard = guard_of(deploying("", n, s, u, rollout=sizes))
    assert (guard.ceiling, guard.keep) == (ceiling, keep)


def test_outside_a_rollout_there_is_no_budget_of_one() -> None:
    with pytest.raises(ValueError, match="web has no rollout"):
        EVALUATOR.budget(resting("■■■"))


def test_limits_that_cannot_be_read_are_those_of_a_policy_that_sets_none() -> None:
    stored = {"strategy": "of a newer release", "spec": {}, "limits": {"timeout_seconds": "long"}}
    assert stored_policy(stored).limits == parse_policy({"strategy": "recreate"}).limits


@pytest.mark.parametrize(
    ("policy", "surges", "parked"),
    [
        ({"strategy": "recreate"}, False, 0),
        ({"strategy": "rolling_update", "spec": {"max_surge": 1, "sleep_seconds": 90}}, True, 90),
        ({"strategy": "rolling_update", "spec": {"max_surge": 0, "max_unavailable": 1}}, False, 0),
        ({"strategy": "blue_green", "spec": {"scale_down_delay_seconds": 60}}, True, 60),
        ({"strategy": "canary", "spec": {"steps": ["5%"]}}, True, 0),
    ],
)
def test_a_policy_says_for_the_time_outside_rollouts_whether_it_surges_and_how_long_it_parks(
    policy: dict[str, Any], *, surges: bool, parked: float
) -> None:
    spec = parse_policy(policy).spec
    assert (spec.may_surge, spec.parked_seconds) == (surges, parked)
