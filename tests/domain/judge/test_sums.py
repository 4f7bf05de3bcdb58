"""What a judge keeps of its evidence: it does not grow, and survives being stored after each interval."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as drawn
from pydantic import TypeAdapter

from domain.judge.evidence import at_no_weight, fold_interval
from domain.judge.judge import judge
from domain.judge.judge_spec import Judge
from domain.model.answer_counts import FIRST_BYTE_MS, Answers, Copies
from domain.model.canary import NOTHING_SEEN, BothSides, EValue, Evidence, Exposure, Sums
from tests.support.pictures.pictures import NOW
from tests.support.worlds.folding import folded

JSON = TypeAdapter(Sums)
Side = tuple[int, int, int, int]
LATER = len(FIRST_BYTE_MS)
"""The bucket of what took longer than any other."""


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
        sums = JSON.validate_json(JSON.dump_json(fold_interval(sums, its, Judge(), NOW)))
    assert sums == folded(Judge(), evidence, NOW)


@given(drawn.lists(drawn.tuples(SIDE, SIDE), min_size=1, max_size=12))
def test_nothing_that_was_told_is_missing_or_counted_twice(sides: list[tuple[Side, Side]]) -> None:
    evidence = told(sides)
    sums = folded(Judge(), evidence, NOW)
    begun = [sum(getattr(its, side).begun for its in evidence) for side in ("canary", "control")]
    failed = [sum(getattr(its, side).failed for its in evidence) for side in ("canary", "control")]
    assert [sums.exposure.canary, sums.exposure.control] == begun
    assert [sums.failed.total.canary_failed, sums.failed.total.control_failed] == failed


def under_way(of: Sequence[tuple[int, int, int, int]], at_first: int = 0, first_byte: int | None = None) -> Exposure:
    """What is told of (canary sent, done, control sent, done) each second.

    The control had so many under way `at_first`, and its answers took as long as this bucket says, if it is known.
    """
    canary, control, told = 0, at_first, []
    for at, (sent, done, others, others_done) in enumerate(of, start=1):
        canary, control = canary + sent - done, control + others - others_done
        old = answers(others, others_done, 0, LATER + 1 if first_byte is None else first_byte)
        fold_interval = Evidence(NOW + timedelta(seconds=at), Answers(done, begun=sent), old, 1, 1)
        told.append(replace(fold_interval, under_way=(canary, control)))
    return folded(Judge(), told, NOW).exposure


@pytest.mark.parametrize(
    ("each_second", "surplus"),
    [
        ((10, 10, 90, 90), 0),
        ((10, 9, 90, 90), 20),  # nobody else waits
        ((10, 9, 90, 81), 9.43),  # 20 of 200 are its share, of which 20 - 2 · √(20 · 1.1) = 10.57 are sure
        ((10, 10, 90, 81), 0),
        ((10, 8, 0, 0), 40),  # no share is known
    ],
)
def test_what_is_under_way_beyond_the_canarys_share_is_its_surplus(
    each_second: tuple[int, int, int, int], surplus: float
) -> None:
    assert under_way([each_second] * 20).surplus == pytest.approx(surplus, abs=0.01)


def test_what_was_under_way_before_the_first_look_is_so_on_the_side_of_the_control() -> None:
    """Answers that take two seconds: 180 of the control were under way, and those of the canary began since."""
    slow = FIRST_BYTE_MS.index(2000)
    before, at_once = [(0, 0, 90, 90)] * 5, [(10, 0, 80, 90)] * 2
    both = [(10, 10, 80, 80)] * 20
    for seconds in (6, 7, 8, 27):
        fold_interval = under_way([*before, *at_once, *both][:seconds], at_first=180, first_byte=slow)
        assert fold_interval.surplus < 3, (
            f"20 are under way to the canary from the second second on, {seconds - 5} s after it"
        )
    hangs = [(10, 9, 80, 80)] * 20
    assert under_way([*before, *at_once, *hangs], at_first=180, first_byte=slow).surplus == pytest.approx(20, abs=4)


def test_of_what_was_under_way_for_long_the_canary_has_none_yet() -> None:
    """Half of the answers take 20 s. The canary is two seconds old: what it has under way now, it was sent just now."""
    times = [0] * (len(FIRST_BYTE_MS) + 1)
    times[FIRST_BYTE_MS.index(20_000)] = times[0] = 45
    old = replace(Answers(90, begun=90), first_byte=tuple(times))
    told = [Evidence(NOW + timedelta(seconds=at), Answers(), old, 1, 1, under_way=(0, 900)) for at in range(60)]
    new = Answers(0, begun=10)
    told += [
        Evidence(NOW + timedelta(seconds=60 + at), new, old, 1, 1, under_way=(10 * at + 10, 900)) for at in range(2)
    ]
    assert folded(Judge(), told, NOW).exposure.surplus > 5, "half of the 20 should have been answered at once"


def test_since_when_there_is_a_surplus_is_known_and_said() -> None:
    assert under_way([(10, 9, 90, 90)] * 20).surplus_since == NOW + timedelta(seconds=1)
    fine, hangs = (10, 10, 90, 90), (10, 9, 90, 90)
    assert under_way([hangs, (10, 11, 90, 90), fine, hangs, hangs]).surplus_since == NOW + timedelta(seconds=4)
    told = [
        Evidence(NOW + timedelta(seconds=at), Answers(9, begun=10), Answers(90, begun=90), 1, 1, under_way=(at, 0))
        for at in range(1, 7)
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


def test_for_a_new_weight_only_what_counts_at_each_weight_begins_anew() -> None:
    settings, later = Judge.model_validate({"slow": {"warm_up": "0s"}}), NOW + timedelta(seconds=9)
    evidence = [
        replace(its, copies=Copies(7, 3), old_failed=5) for its in told([((50, 50, 1, 20), (200, 200, 9, 20))] * 3)
    ]
    sums = folded(settings, evidence, NOW, copied=1000)
    measures = {
        name: replace(getattr(sums, name), here=BothSides(), good=EValue())
        for name in ("failed", "refused", "redirected", "slow")
    }
    assert all(getattr(sums, name).here.canary == 150 for name in ("failed", "refused", "redirected"))
    assert (sums.looks, sums.requests, sums.copies, sums.old_failed) == (3, 150, Copies(21, 9), 15)
    assert sums.copied.highest > 0
    assert at_no_weight(sums, later) == replace(
        sums, since=later, looks=0, requests=0, copies=Copies(), copied=EValue(), old_failed=0, **measures
    )
