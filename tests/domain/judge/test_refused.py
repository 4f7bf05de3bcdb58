"""A canary that refuses or redirects what the control answers is harmful, whatever callers get wrong."""

import pytest

from domain.judge.judge import Found
from domain.judge.judge_spec import Errors, Judge, Refused
from domain.model.answer_counts import Answers
from domain.model.canary import Evidence
from tests.domain.judge.test_judged import found, seen
from tests.support.pictures.pictures import NOW


def told(canary: Answers, control: Answers) -> Evidence:
    return Evidence(NOW, canary, control, 1, 1)


def refused(canary: tuple[int, int], control: tuple[int, int]) -> Evidence:
    """Each side as (done, refused)."""
    new, old = (Answers(done, begun=done, refused=its) for done, its in (canary, control))
    return told(new, old)


def redirected(canary: tuple[int, int], control: tuple[int, int]) -> Evidence:
    """Each side as (done, redirected)."""
    new, old = (Answers(done, begun=done, redirected=its) for done, its in (canary, control))
    return told(new, old)


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        ([refused((20, 20), (380, 0))], Found.HARM),
        ([refused((50, 50), (950, 950))] * 20, Found.GOOD),  # what callers get wrong is nobody's fault
        ([refused((50, 1), (950, 19))] * 20, Found.GOOD),
        ([refused((1000, 0), (0, 0))], Found.GOOD),
        ([redirected((20, 20), (380, 0))], Found.HARM),
        ([redirected((50, 20), (950, 380))] * 20, Found.GOOD),
        ([seen((1, 1), (19, 0))] * 3, Found.HARM),
        # a fix: 400 in place of 500
        ([told(Answers(50, begun=50, refused=5), Answers(950, 95, begun=950))] * 40, Found.GOOD),
        ([told(Answers(50, begun=50, refused=5), Answers(950, begun=950, redirected=95))] * 40, Found.HARM),
    ],
)
def test_the_verdict_on_refusals(evidence: list[Evidence], verdict: Found) -> None:
    assert found(Judge(errors=Errors(worse_than="1x")), evidence).finding is verdict


def test_a_refusal_is_no_failure() -> None:
    said = found(Judge(), [refused((20, 20), (380, 0))]).sentence
    assert said.startswith(
        "refusals: canary 100 % (20 of 20), control refused or failed none of 380, worse (chance below"
    )
    assert found(Judge(errors=None), [refused((1000, 0), (0, 0))]).finding is Found.GOOD


def test_what_neither_side_has_any_of_is_not_said() -> None:
    said = found(Judge(), [redirected((10, 2), (90, 5))]).sentence
    assert said.startswith(
        "failures and refusals: none of 10, not decided; "
        "redirections: canary 20 % (2 of 10), control 5.6 % (5 of 90), 3.6 times"
    )


def test_the_measure_that_is_still_waited_for_is_said_though_neither_side_has_any_of_it() -> None:
    lenient = Judge(errors=Errors(allowed="40%"), refused=Refused(allowed="40%"))
    said = found(lenient, [seen((50, 0), (50, 0))] * 2)
    assert said.finding is Found.UNDECIDED
    assert said.sentence == "failures and refusals: none of 100, good; redirections: none of 100, not decided"


def test_each_measure_has_its_own_verdict_and_no_chance_speaks_for_the_canary_as_a_whole() -> None:
    """A service that never answers 4xx, and fails a little: its control's failures are no refusals."""
    evidence = [told(Answers(966, 24, begun=966), Answers(948, 19, begun=948))]
    verdict = found(Judge(), evidence)
    assert verdict.finding is Found.UNDECIDED
    assert verdict.sentence == (
        "failures: canary 2.5 % (24 of 966), control 2 % (19 of 948), 1.2 times as often, not decided; "
        "refusals and redirections: none of 966, good"
    )
