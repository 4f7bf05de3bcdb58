"""A canary that refuses what the control does not is harmful, whatever callers get wrong."""

import pytest

from domain.judge.judged import Found, judge
from domain.judge.settings import Errors, Judge
from domain.model.answers import Answers
from domain.model.canary import Evidence
from tests.domain.canary.test_judge import SINCE, seen
from tests.support.pictures.pictures import NOW


def refused(canary: tuple[int, int | None], control: tuple[int, int | None]) -> Evidence:
    """Each side as (done, refused)."""
    new, old = (Answers(done, refused=its) for done, its in (canary, control))
    return Evidence(NOW, new, old, 1, 1)


@pytest.mark.parametrize(
    ("evidence", "found"),
    [
        ([refused((20, 20), (380, 0))], Found.HARM),
        ([refused((50, 50), (950, 950))] * 20, Found.GOOD),  # what callers get wrong is nobody's fault
        ([refused((50, 1), (950, 19))] * 20, Found.GOOD),
        ([refused((1000, 0), (0, 0))], Found.GOOD),
        # a release before did not count them: what it saw is judged without them, to the same limit
        ([refused((1000, None), (0, None))], Found.GOOD),
        ([seen((1, 1), (19, 0))] * 3, Found.HARM),
    ],
)
def test_the_verdict_on_refusals(evidence: list[Evidence], found: Found) -> None:
    assert judge(Judge(errors=Errors(worse_than="1x")), evidence, SINCE, NOW).found is found


def test_a_refusal_is_no_failure_and_what_was_not_counted_is_not_good() -> None:
    said = judge(Judge(), [refused((20, 20), (380, 0))], SINCE, NOW).sentence
    assert said.startswith("canary 20 of 20 were refused, control 0 of 380; if it were no worse")
    only = Judge(errors=None)
    assert judge(only, [refused((1000, 0), (0, 0))], SINCE, NOW).found is Found.GOOD
    assert judge(only, [refused((1000, None), (0, None))], SINCE, NOW).found is Found.UNDECIDED
