"""What a judge keeps of its evidence: it does not grow, and survives being stored after each interval."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as drawn
from pydantic import TypeAdapter

from domain.judge.judged import judge
from domain.judge.settings import Judge
from domain.judge.sums import seen
from domain.model.answers import FIRST_BYTE_MS, Answers
from domain.model.canary import NOTHING_SEEN, Evidence, Exposure, Sums
from tests.support.pictures.pictures import NOW
from tests.support.worlds.folding import folded

JSON = TypeAdapter(Sums)
Side = tuple[int, int, int, int]


def answers(begun: int, done: int, failed: int, first_byte: int) -> Answers:
    at = tuple(done * (place == first_byte) for place in range(len(FIRST_BYTE_MS) + 1))
    return Answers(done, min(failed, done), at, begun=begun)


def told(sides: Sequence[tuple[Side, Side]]) -> list[Evidence]:
    return [
        Evidence(NOW + timedelta(seconds=at), answers(*new), answers(*old), 1, 1)
        for at, (new, old) in enumerate(sides, start=1)
    ]


SIDE = drawn.tuples(*(drawn.integers(0, most) for most in (50, 50, 5, len(FIRST_BYTE_MS))))


@given(drawn.lists(drawn.tuples(SIDE, SIDE), max_size=12))
def test_sums_that_are_stored_and_read_after_each_interval_are_those_that_never_were(
    sides: list[tuple[Side, Side]],
) -> None:
    evidence, sums = told(sides), NOTHING_SEEN
    for its in evidence:
        sums = JSON.validate_json(JSON.dump_json(seen(sums, its, Judge(), NOW)))
    assert sums == folded(Judge(), evidence, NOW)


@given(drawn.lists(drawn.tuples(SIDE, SIDE), min_size=1, max_size=12))
def test_nothing_that_was_told_is_missing_or_counted_twice(sides: list[tuple[Side, Side]]) -> None:
    evidence = told(sides)
    sums = folded(Judge(), evidence, NOW)
    begun = [sum(getattr(its, side).begun for its in evidence) for side in ("canary", "control")]
    failed = [sum(getattr(its, side).failed for its in evidence) for side in ("canary", "control")]
    assert [sums.exposure.canary, sums.exposure.control] == begun
    assert [sums.failed.total.canary_failed, sums.failed.total.control_failed] == failed


def under_way(of: Sequence[tuple[int, int, int, int]]) -> Exposure:
    """What is told of (canary sent, done, control sent, done) each second."""
    told = [
        Evidence(NOW + timedelta(seconds=at), Answers(done, begun=sent), Answers(others_done, begun=others), 1, 1)
        for at, (sent, done, others, others_done) in enumerate(of, start=1)
    ]
    return folded(Judge(), told, NOW).exposure


@pytest.mark.parametrize(
    ("each_second", "owed"),
    [
        ((10, 10, 90, 90), 0),
        ((10, 9, 90, 90), 20),  # nobody else waits
        ((10, 9, 90, 81), 10),  # 20 of 200 are its share, of which 20 - 2 · √(20 · 1.1) = 10.6 are sure
        ((10, 10, 90, 81), 0),
        ((10, 8, 0, 0), 40),  # no share is known
    ],
)
def test_what_is_under_way_beyond_the_canarys_share_is_owed(each_second: tuple[int, int, int, int], owed: int) -> None:
    assert under_way([each_second] * 20).owed == owed


def test_since_when_it_is_owed_is_known_and_said() -> None:
    assert under_way([(10, 9, 90, 90)] * 20).owed_since == NOW + timedelta(seconds=1)
    fine, hangs = (10, 10, 90, 90), (10, 9, 90, 90)
    assert under_way([hangs, (10, 11, 90, 90), fine, hangs, hangs]).owed_since == NOW + timedelta(seconds=4)
    told = [
        Evidence(NOW + timedelta(seconds=at), Answers(9, begun=10), Answers(90, begun=90), 1, 1) for at in range(1, 7)
    ]
    found = judge(Judge(), folded(Judge(), told, NOW), NOW, NOW + timedelta(seconds=11))
    assert (
        "6 under way to the canary, for 10 s more than is surely its share: 6 count as failed until they end"
        in found.sentence
    )


def test_the_sums_of_a_day_are_no_larger_than_those_of_an_hour() -> None:
    an_hour = told([((50, 50, 1, 20), (900, 900, 9, 20))] * 3_600)
    its_sums = folded(Judge(), an_hour, NOW)
    size = len(JSON.dump_json(its_sums))
    later = folded(Judge(), told([((50, 50, 1, 20), (900, 900, 9, 20))] * 4_800), NOW)
    assert len(JSON.dump_json(later)) < 1.01 * size < 4_000
