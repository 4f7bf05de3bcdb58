"""The points of a judge's curve: what each one holds, and which are kept."""

from datetime import timedelta

import pytest

from domain.judge.judge import Point, is_due, measures, point_of
from domain.judge.judge_spec import Judge
from domain.model.answer_counts import Answers
from domain.model.canary import NOTHING_SEEN, Evidence
from tests.support.pictures.pictures import NOW
from tests.support.worlds.folding import folded


def test_a_point_has_the_failures_so_far_and_the_measures_that_went_furthest() -> None:
    settings = Judge()
    told = Evidence(NOW, Answers(100, 9, begun=110, refused=2), Answers(900, 3, begun=910, refused=40), 1, 1)
    sums = folded(settings, [told], NOW - timedelta(seconds=30))
    found = point_of(settings, sums, NOW, 500)
    each = list(measures(settings, sums))
    assert found == Point(NOW, 500, 110, 9, 910, 3, max(its.harm for its in each), min(its.good for its in each))
    assert found.harm == each[0].harm > each[1].harm
    assert found.good == each[0].good < each[1].good
    assert point_of(settings, NOTHING_SEEN, NOW, 0).canary == 0


@pytest.mark.parametrize(
    ("first", "last", "at", "is_kept"),
    [
        (None, None, 0, True),
        (0, None, 0, True),
        (0, 0, 0, True),
        (0, 0, 1, True),
        (0, 99, 100, True),  # a hundredth of the time since the first
        (0, 99.5, 100, False),
        (0, 86_000, 86_400, False),
        (0, 85_536, 86_400, True),
    ],
)
def test_a_point_is_kept_once_a_hundredth_of_the_time_has_passed(
    first: float | None, last: float | None, at: float, *, is_kept: bool
) -> None:
    began, before = (None if each is None else NOW + timedelta(seconds=each) for each in (first, last))
    assert is_due(began, before, NOW + timedelta(seconds=at)) is is_kept
