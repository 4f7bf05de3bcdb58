"""What a canary's policy may say, and how it is refused."""

from typing import Any

import pytest

from domain.judge.judge_spec import AtMost, Judge, Slow, part, times
from domain.strategies.canary.steps import CanarySpec
from domain.text.errors import InvalidInputError
from tests.support.pictures.policies import canary


@pytest.mark.parametrize(
    ("spec", "field", "right"),
    [
        ({"steps": ["5"]}, "step 1, weight", 'such as "5%"'),
        ({"steps": [5]}, "step 1, weight", "must be a share of the requests"),
        ({"steps": [5.5]}, "step 1, weight", "must be a share of the requests"),
        ({"steps": [{"weight": 5}]}, "step 1, weight", 'such as "5%"'),
        ({"steps": ["0%"]}, "step 1, weight", 'from "0.01%"'),
        ({"steps": []}, "steps", "must not be empty"),
        ({"steps": [f"{weight}%" for weight in range(1, 22)]}, "steps", "has 21 items, and 20 are the most"),
        ({"steps": [{"weight": "5%", "colour": "red"}]}, "step 1, colour", "there is no such field"),
        ({"steps": ["50%", "5%"]}, "", "rising weights"),
        ({"steps": [{"weight": "5%", "seconds": 0}]}, "seconds", "more than 0"),
        ({"max_surge": 0, "max_unavailable": 1}, "", "runs next to"),
        ({"judge": {"errors": None, "refused": None, "redirected": None}}, "judge", "nothing would be judged"),
        ({"judge": {"errors": {"allowed": "0%"}}}, "judge.errors.allowed", "above 0"),
        ({"judge": {"errors": {"allowed": "100%"}}}, "judge.errors.allowed", "below 100"),
        ({"judge": {"errors": {"allowed": "1.0001%"}}}, "judge.errors.allowed", "below 100"),
        ({"judge": {"errors": {"worse_than": "0.5x"}}}, "judge.errors.worse_than", 'such as "1.2x"'),
        ({"judge": {"errors": {"worse_than": "1.234x"}}}, "judge.errors.worse_than", 'such as "1.2x"'),
        ({"judge": {"errors": {"worse_than": 2}}}, "judge.errors.worse_than", 'such as "1.2x"'),
        ({"judge": {"slow": {"by_at_least": "0%"}}}, "judge.slow.by_at_least", 'such as "20%" or "50ms"'),
        ({"judge": {"slow": {"by_at_least": 20}}}, "judge.slow.by_at_least", 'such as "20%" or "50ms"'),
        ({"judge": {"slow": {"of": "95"}}}, "judge.slow.of", 'such as "p95"'),
        ({"judge": {"slow": {"of": "p95", "percentile": 95}}}, "judge.slow.percentile", "no such field"),
        ({"judge": {"slow": {"percentile": 20}}}, "judge.slow.of", 'such as "p95"'),
        ({"judge": {"slow": {"warm_up": 60}}}, "judge.slow.warm_up", 'such as "60s"'),
        ({"match": {}}, "match", "must name either a cookie or a header"),
        ({"match": {"header": "a", "cookie": "b"}}, "match", "must name either a cookie or a header"),
        ({"match": {"header": "Cookie"}}, "match", "is the proxy's own"),
        ({"match": {"header": "x-beta:"}}, "match.header", "must be a name of letters, digits"),
        ({"match": {"cookie": "beta", "value": "a;b"}}, "match.value", "must be letters, digits, blanks"),
        ({"match": {"cookie": "beta"}, "judge": {}}, "", "chosen callers are no sample"),
        ({"judge": {"chance_of_false_abort": 0.01}}, "judge.chance_of_false_abort", 'such as "1%"'),
        ({"judge": {"if_undecided": "wait"}}, "judge.if_undecided", "promote"),
    ],
)
def test_what_a_canary_cannot_be_is_said(spec: dict[str, Any], field: str, right: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        canary(**spec)
    assert field in refused.value.message
    assert right in refused.value.message


def test_left_out_its_steps_are_three_and_the_least_weight_is_one_request_of_ten_thousand() -> None:
    assert CanarySpec().stages == ((500, None), (2500, None), (5000, None))
    assert CanarySpec.model_validate({"steps": ["0.01%"]}).stages == ((1, None),)


def test_settings_that_are_read_already_stay_as_they_are() -> None:
    spec, slow = CanarySpec(sticky=True), Slow(of="p99")
    assert CanarySpec.model_validate(spec) == spec
    assert Slow.model_validate(slow) == slow


@pytest.mark.parametrize(("percentile", "of"), [(95, "p95"), (99.9, "p99.9"), (50.0, "p50")])
def test_a_percentile_may_be_given_as_a_number_as_before(percentile: float, of: str) -> None:
    given = {"slow": {"percentile": percentile, "worse_than": "1.5x"}}
    judge = Judge.model_validate(given)
    assert judge.slow == Slow(of=of, worse_than="1.5x")
    assert Judge.model_validate(judge.model_dump()) == judge


def test_a_judge_and_seconds_do_not_both_end_a_step() -> None:
    steps: list[Any] = [{"weight": "5%", "seconds": 60}]
    for timed in (steps, [*steps, "50%"]):
        with pytest.raises(InvalidInputError, match="a judge says when they are over"):
            canary(steps=timed, judge={})
    assert canary(steps=steps, judge={"dry_run": True})
    assert Judge(at_most=AtMost(seconds=60)).at_most.seconds == 60


def test_a_part_and_how_many_times_are_numbers() -> None:
    assert [part("12.5%"), part("0.001%"), times("1x"), times("12.25x")] == [0.125, 0.00001, 1, 12.25]
