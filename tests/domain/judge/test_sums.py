"""What a judge keeps of its evidence: it does not grow, and survives being stored after each interval."""

from collections.abc import Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as drawn
from pydantic import TypeAdapter

from domain.judge.settings import Judge
from domain.judge.sums import seen
from domain.model.answers import FIRST_BYTE_MS, Answers
from domain.model.canary import NOTHING_SEEN, Evidence, Sums
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


def test_the_sums_of_a_day_are_no_larger_than_those_of_an_hour() -> None:
    an_hour = told([((50, 50, 1, 20), (900, 900, 9, 20))] * 3_600)
    its_sums = folded(Judge(), an_hour, NOW)
    size = len(JSON.dump_json(its_sums))
    later = folded(Judge(), told([((50, 50, 1, 20), (900, 900, 9, 20))] * 4_800), NOW)
    assert len(JSON.dump_json(later)) < 1.01 * size < 20_000
