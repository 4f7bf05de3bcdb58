"""What holds for any rules and any values."""

import math
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from domain.autoscaling.rule import Aggregate, AutoscalingRule, Comparator, MetricValue, ProxyMetric
from domain.autoscaling.scaling_decision import (
    DemandLook,
    DemandSeries,
    Quiet,
    Scaling,
    Shown,
    evaluate_rules,
    judge_rules,
    value_of_demand,
    with_look,
)
from tests.support.pictures.autoscaling_rules import ago
from tests.support.pictures.pictures import NOW

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
        for series in draw(st.sets(st.sampled_from(sorted({rule.series for rule in rules}))))
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
    for rule, said in zip(rules, judged, strict=True):
        assert "nan" not in said.reason
        if isinstance(said, Quiet):
            continue
        assert rule.min_replicas <= said.desired <= rule.max_replicas
        assert (said.desired - desired) * rule.step > 0
        value = known[rule.series]
        assert math.isfinite(value.value)
        assert (NOW - value.at).total_seconds() <= rule.max_age_seconds
        assert rule.step > 0 or not value.missing
        assert last is None or value.at > last


@given(situations())
def test_the_same_situation_always_gives_the_first_move_of_all(situation: Any) -> None:
    rules, values, desired, last = situation
    moves = [verdict for verdict in judge_rules(rules, values, desired, last, NOW) if isinstance(verdict, Scaling)]
    for _ in range(2):
        assert evaluate_rules(rules, reversed(values), desired, last, NOW) == next(iter(moves), None)


@given(situations(), st.lists(st.tuples(st.integers(0, 20), MEASURED), min_size=1, max_size=30))
def test_never_are_there_two_moves_within_a_cooldown(situation: Any, measured: Any) -> None:
    """The clock continues, each rule reads the same number, and every move is applied."""
    rules, _, desired, last = situation
    now = NOW
    for seconds, number in measured:
        now += timedelta(seconds=seconds)
        values = [MetricValue(rule.series, number, now) for rule in rules]
        scaling = evaluate_rules(rules, values, desired, last, now)
        if scaling is None:
            continue
        by = rules[judge_rules(rules, values, desired, last, now).index(scaling)]
        assert last is None or (now - last).total_seconds() >= by.cooldown_seconds
        assert last is None or now > last
        desired, last = scaling.desired, now


@given(rules_of(), st.integers(0, 20), st.integers(1, 200))
def test_a_rule_alone_comes_to_rest_at_its_limit(rule: AutoscalingRule, desired: int, most: int) -> None:
    """Under one and the same load the count never goes to and fro."""
    rule = rule.model_copy(update={"comparator": Comparator.ABOVE, "threshold": 0.0})
    counts, last, now = [desired], None, NOW
    for _ in range(most):
        now += timedelta(seconds=61)
        scaling = evaluate_rules([rule], [MetricValue(rule.series, 1, now)], counts[-1], last, now)
        if scaling is None:
            break
        counts.append(scaling.desired)
        last = now
    assert counts in (sorted(counts), sorted(counts, reverse=True))
    assert len(set(counts)) == len(counts)


NODES = frozenset({"a", "b", "c"})
SHOWN = st.builds(Shown, st.integers(0, 9), st.integers(0, 900), st.integers(0, 9))
SHOWN_BY_ALL = st.lists(st.dictionaries(st.sampled_from(sorted(NODES)), SHOWN), min_size=1, max_size=8)


def begins_anew(node: str, shown: list[dict[str, Shown]]) -> bool:
    """Whether it is not known how much a proxy was asked since the last look."""
    *_, before, last = {}, *shown
    if not {node} <= before.keys() & last.keys():
        return True
    return before[node].uptime > last[node].uptime or before[node].requests > last[node].requests


@given(
    SHOWN_BY_ALL, st.sampled_from(ProxyMetric), st.integers(0, 20), st.floats(0, 1000), st.sampled_from(["avg", "sum"])
)
def test_while_a_proxy_is_silent_no_replica_is_taken_away(
    shown: list[dict[str, Shown]], metric: ProxyMetric, desired: int, threshold: float, how: str
) -> None:
    looks: tuple[DemandLook, ...] = ()
    for number, by_node in enumerate(shown):
        looks = with_look(looks, DemandLook(2.0 * number, NODES, by_node))
    kind = {"metric": metric, "source": "proxy", "comparator": "<=", "threshold": threshold, "max_replicas": 20}
    rule = AutoscalingRule.model_validate({**kind, "step": -1, "min_replicas": 0, "aggregate": how})
    value = value_of_demand(DemandSeries(UUID(int=1), "web", desired, rule.series, metric, how == "avg"), looks, NOW)
    (said,) = judge_rules([rule], [value] if value else [], desired, None, NOW)
    silent = {node for node in NODES if node not in shown[-1]}
    if metric is ProxyMetric.REQUESTS_PER_SECOND:
        silent |= {node for node in NODES if begins_anew(node, shown)}
    assert value is None or set(value.silent) == silent
    assert not silent or isinstance(said, Quiet)
    if silent and value and value.value <= threshold:
        assert all(node in said.reason for node in silent)
