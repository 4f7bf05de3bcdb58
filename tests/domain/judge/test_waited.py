"""Requests that wait: when one of the canary's has surely waited too long, counted by hand."""

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.judge.evidence import never_answered, waited
from domain.judge.judge_spec import Errors, Slow
from domain.model.answer_counts import FIRST_BYTE_MS, Answers
from domain.model.canary import Evidence, Exposure, Waiting
from tests.domain.planning.test_request_summary import first_byte
from tests.support.pictures.pictures import NOW

A_TENTH = 0.1
SLOW = Slow(by_at_least="1000ms", warm_up="0s")
"""Beyond 100 ms the control is slow, beyond 1200 ms the canary. Proxies tell of that within 3 s."""
MS_100 = FIRST_BYTE_MS.index(100)
BEGUN = Waiting(bucket=MS_100, owed=4)
NOTHING = Answers()
Look = tuple[int, Answers, Answers]


def looks(
    *told: Look, before: Waiting = BEGUN, slow: Slow = SLOW, share: float = A_TENTH, is_cold: bool = False, **how: Any
) -> Waiting:
    """Each look: its second, and what was told of the canary and of the control since the one before."""
    waiting = before
    for second, new, old in told:
        evidence = Evidence(NOW + timedelta(seconds=second), new, old, 1, 1)
        bucket = None if is_cold else MS_100
        waiting = waited(waiting, Exposure(under_way=(7, 4)), evidence, bucket, share, slow, **how)
    return waiting


def likely(failed: int, others: int, share: float = A_TENTH, worse_than: float = 1) -> float:
    """The logarithm of the mean over how much worse the canary may be."""

    def theta(times: float) -> float:
        return share * times / (share * times + 1 - share)

    null = theta(worse_than)
    each = [theta(worse_than * times) for times in (1.5, 2, 3, 5, 10, 30)]
    return math.log(sum((its / null) ** failed * ((1 - its) / (1 - null)) ** others for its in each) / 6)


def test_before_the_control_has_a_percentile_nothing_is_counted_and_then_what_it_has_under_way_is_owed() -> None:
    sent = Answers(begun=9)
    assert looks((1, sent, sent), before=Waiting(), is_cold=True) == Waiting()
    assert looks((1, sent, sent), before=Waiting()) == BEGUN


TEN = Answers(begun=10)
MIXED = replace(Answers(88, 3, first_byte(ms100=50, ms110=1, ms1200=1, ms1300=1)), cut=1, begun=90)
"""Of 90 two are open, and two have failed before they began; three first bytes are late, one of them for a canary."""


def test_what_was_sent_three_seconds_ago_and_has_not_ended_has_waited_too_long() -> None:
    at_first = looks((1, TEN, MIXED))
    assert at_first == replace(BEGUN, share=A_TENTH, pending=((NOW + timedelta(seconds=1), 10, 4, 3),))
    just_before = looks((1, TEN, MIXED), (3, NOTHING, NOTHING))
    assert (just_before.asked, just_before.canary, just_before.highest) == (0, 0, 0)
    late = looks((1, TEN, MIXED), (4, NOTHING, NOTHING))
    assert (late.asked, late.settled, late.owed, late.late) == (10, 0, 8, 3)
    assert (late.canary, late.control) == (10, 11)
    assert late.highest == pytest.approx(likely(10, 11))
    assert late.pending == ((NOW + timedelta(seconds=4), 0, 0, 0),)


def test_where_the_control_waits_as_long_a_little_later_than_before_is_not_late() -> None:
    late = looks((1, TEN, MIXED), (4, NOTHING, NOTHING), alike=True)
    assert (late.late, late.canary, late.control) == (1, 10, 9)


@pytest.mark.parametrize(
    ("told", "counted"),
    [
        # eight of ten have ended in time
        ([(1, TEN, NOTHING), (2, Answers(8, 0, first_byte(ms1200=8)), NOTHING), (4, NOTHING, NOTHING)], (2, 4)),
        # an answer that came late is no better than none
        ([(1, TEN, NOTHING), (2, Answers(8, 0, first_byte(ms1300=8)), NOTHING), (4, NOTHING, NOTHING)], (10, 4)),
        # what the control had under way has ended, and more than that: none is owed
        ([(1, TEN, Answers(9, begun=0)), (4, NOTHING, NOTHING)], (10, 0)),
        # what the control answers late counts as soon as it is told
        ([(1, TEN, NOTHING), (4, NOTHING, Answers(3, 0, first_byte(ms110=3), begun=3))], (10, 7)),
        # it counts once
        ([(1, TEN, NOTHING), (4, NOTHING, NOTHING), (7, NOTHING, NOTHING)], (10, 4)),
    ],
)
def test_what_waits_too_long_on_both_sides(told: Sequence[Look], counted: tuple[int, int]) -> None:
    found = looks(*told)
    assert (found.canary, found.control) == counted
    assert found.highest == pytest.approx(likely(*counted))


def test_it_is_as_much_as_it_was_at_its_highest() -> None:
    late = looks((1, TEN, NOTHING), (4, NOTHING, NOTHING))
    answered = looks((8, Answers(10, 0, first_byte(ms2=10)), NOTHING), before=late)
    assert (answered.settled, answered.canary, answered.control, answered.highest) == (10, 10, 4, late.highest)


def test_requests_of_a_canary_that_warms_up_are_not_waited_for() -> None:
    late = looks((1, TEN, MIXED), (4, NOTHING, NOTHING), is_cold=True)
    assert (late.asked, late.owed, late.late, late.canary) == (0, 8, 3, 0)


def test_the_highest_share_of_the_canary_is_taken() -> None:
    first = looks((1, TEN, NOTHING), share=0.5)
    second = looks((4, NOTHING, NOTHING), before=first, share=A_TENTH)
    assert second.share == 0.5
    assert second.highest == pytest.approx(likely(10, 4, share=0.5))
    assert looks((1, TEN, NOTHING), (4, NOTHING, NOTHING), share=0.0).highest == 0


@pytest.mark.parametrize(
    ("by_at_least", "bucket", "seconds"),
    [
        ("1000ms", 100, 3),
        ("2700ms", 100, 3),  # 3 s
        ("2900ms", 100, 3.3),  # the next edge after 3001 ms
        ("5000ms", 300, 5.5),
        ("20%", 200_000, 300),
    ],
)
def test_it_takes_as_long_as_the_edge_beyond_which_an_answer_is_late(
    by_at_least: str, bucket: int, seconds: float
) -> None:
    slow = Slow(by_at_least=by_at_least, warm_up="0s")
    begun = Waiting(bucket=FIRST_BYTE_MS.index(bucket), owed=0)
    sent = waited(begun, Exposure(), Evidence(NOW, TEN, NOTHING, 1, 1), 1, A_TENTH, slow)
    for passed, canary in ((seconds - 0.01, 0), (seconds, 10)):
        evidence = Evidence(NOW + timedelta(seconds=passed), NOTHING, NOTHING, 1, 1)
        assert waited(sent, Exposure(), evidence, 1, A_TENTH, slow).canary == canary


def test_beyond_the_last_edge_nothing_is_known_to_wait() -> None:
    begun = Waiting(bucket=len(FIRST_BYTE_MS))
    assert looks((1, TEN, NOTHING), (4_000, NOTHING, NOTHING), before=begun) == begun


def test_where_slow_answers_are_not_judged_as_many_times_as_errors_may_wait_five_seconds_longer() -> None:
    rules = never_answered(Errors(worse_than="3x"))
    assert (rules.of, rules.by_at_least, rules.worse_than, rules.warm_up) == ("p99.9", "5000ms", "3x", "0s")
    late = looks((1, TEN, NOTHING), (7, NOTHING, NOTHING), slow=rules)
    assert late.highest == pytest.approx(likely(10, 4, worse_than=3))
