"""What is pending at a canary beyond its likely share, counted by hand from its requests and the control's times."""

from datetime import timedelta
from math import sqrt
from typing import Any

import pytest

from domain.judge.evidence import exposed
from domain.judge.pending_requests import surplus
from domain.model.answer_counts import Answers
from domain.model.canary import Evidence, Exposure
from tests.domain.planning.test_request_summary import first_byte
from tests.support.pictures.pictures import NOW

A_SECOND, TEN_SECONDS = first_byte(ms1000=100), first_byte(ms10000=100)
"""All answers take 0.9 to 1 s, or 9 to 10 s: 0.95 and 9.5 s in the mean."""


def exposure(*recent: tuple[int, int], seconds: tuple[float, ...], span: float | None, **sums: Any) -> Exposure:
    """Requests to (canary, control) in each interval. `span`: the seconds since the first look; None: unknown."""
    canary, control = (sum(side) for side in zip(*recent, strict=True))
    first_at = None if span is None else NOW - timedelta(seconds=span)
    given = {"canary": canary, "control": control, "at": NOW, "first_at": first_at, **sums}
    return Exposure(recent=recent, seconds=seconds, **given)


def likely(expected: float, variance: float) -> float:
    """The fewest that are likely: two standard deviations below."""
    return expected - 2 * sqrt(variance)


NEWEST_LAST = {"recent": ((0, 0), (20, 180)), "seconds": (0.0, 2.0), "span": 2.0}


def seen(under_way: tuple[int, int], times: tuple[int, ...] = A_SECOND, **given: Any) -> float:
    told = {**NEWEST_LAST, **given}
    return surplus(exposure(*told.pop("recent"), under_way=under_way, first_byte=times, **told))


def test_of_requests_whose_answers_take_longer_than_they_are_old_all_are_pending_on_both_sides() -> None:
    """180 + 90 · (9.5 s - 2 s) = 855 of the control: those of the last 2 s, and those from before the first look."""
    assert seen((20, 855), TEN_SECONDS) == pytest.approx(0)
    assert seen((27, 855), TEN_SECONDS) == pytest.approx(7)
    assert seen((10, 855), TEN_SECONDS) == 0
    fewer = 427 * 20 / 855
    assert seen((20, 427), TEN_SECONDS) == pytest.approx(20 - fewer)
    beyond = 855 + 100
    times = 20 / 855
    assert seen((60, beyond), TEN_SECONDS) == pytest.approx(60 - likely(times * beyond, times * (1 + times) * 100))


def test_of_requests_that_are_partly_answered_chance_has_a_part() -> None:
    """Of those of two seconds 0.95 / 2 are pending, give or take: 9.5 of the canary's 20, 85.5 of the control's 180."""
    doubt = 0.475 * 0.525
    variance = 20 * doubt + 180 * doubt / 81
    assert seen((15, 85)) == pytest.approx(15 - likely(85 / 9, variance))
    beyond = 200 - 85.5 - 2 * sqrt(180 * doubt)
    assert seen((15, 200)) == pytest.approx(15 - likely(200 / 9, variance + 10 / 81 * beyond))
    assert seen((15, 0)) == 15


@pytest.mark.parametrize(("seconds", "lasts"), [(0.5, 1), (0.9, 1), (0.95, 0.925 / 0.95), (1, 0.95), (4, 0.95 / 4)])
def test_the_part_that_is_pending_is_that_of_answers_which_take_longer(seconds: float, lasts: float) -> None:
    doubt = lasts * (1 - lasts)
    before = 180 / seconds * (0.95 - lasts * seconds)
    new, old = 20 * lasts, 180 * lasts + before
    variance = 20 * doubt + (new / old) ** 2 * 180 * doubt
    expected = seen((30, 40), seconds=(0.0, seconds), span=seconds)
    assert expected == pytest.approx(30 - max(0, likely(40 * new / old, variance)), rel=1e-6)


def test_each_interval_is_as_old_as_those_after_it_are_long() -> None:
    """The newest takes 0.5 s, and all of it is pending; of the second before 0.45 / 1."""
    recent = ((0, 0), (40, 60), (10, 90))
    doubt = 0.45 * 0.55
    new, old = 10 + 18, 90 + 27
    variance = 40 * doubt + (new / old) ** 2 * 60 * doubt
    found = seen((40, 100), recent=recent, seconds=(0.0, 1.0, 0.5), span=1.5)
    assert found == pytest.approx(40 - likely(100 * new / old, variance))


def test_what_was_sent_before_the_last_intervals_counts_as_sent_since_the_first_look() -> None:
    """10 and 90 were sent 2 to 4 s ago; 270 / 4 · (9.5 - 4) of the control before that."""
    known = {"span": 4.0, "canary": 30, "control": 270}
    times = 30 / (180 + 90 + 270 / 4 * 5.5)
    assert seen((40, 600), TEN_SECONDS, **known) == pytest.approx(40 - 600 * times)


@pytest.mark.parametrize("known", [{"span": None}, {"span": 4.0, "at": None}, {"span": 1.0}])
def test_where_the_first_look_is_not_known_it_was_as_long_ago_as_the_intervals_take(known: dict[str, Any]) -> None:
    assert seen((27, 855), TEN_SECONDS, **known) == pytest.approx(7)


def test_intervals_whose_seconds_an_earlier_version_did_not_keep_are_part_of_what_was_sent_before() -> None:
    known = {"recent": ((10, 90), (20, 180)), "seconds": (2.0,), "span": 4.0}
    times = 30 / (180 + 90 + 270 / 4 * 5.5)
    assert seen((40, 600), TEN_SECONDS, **known) == pytest.approx(40 - 600 * times)


def test_beyond_the_last_edge_nothing_more_is_known_of_answers() -> None:
    """Half of the answers take more than 300 s: of those, no more than that is counted on."""
    half = first_byte(ms10000=50, longer=50)
    area = 9.5 / 2 + 300 / 2
    doubt = area / 400 * (1 - area / 400)
    variance = 40 * doubt + 160 * doubt / 16
    found = seen((40, 60), half, recent=((0, 0), (40, 160)), seconds=(0.0, 400.0), span=400.0)
    assert found == pytest.approx(40 - likely(60 / 4, variance))


@pytest.mark.parametrize(
    ("times", "seconds"),
    [(first_byte(ms10000=99), (0.0, 2.0)), (TEN_SECONDS, (0.0, 0.0)), (TEN_SECONDS, ())],
)
def test_until_the_times_of_answers_are_known_all_recent_ones_may_be_pending(
    times: tuple[int, ...], seconds: tuple[float, ...]
) -> None:
    recent = ((10, 0), (20, 270))
    assert seen((15, 81), times, recent=recent, seconds=seconds) == pytest.approx(15 - likely(9, 81 * 10 / 81))


def test_where_the_control_got_nothing_no_share_is_known() -> None:
    assert seen((15, 81), first_byte(), recent=((30, 0),), seconds=(0.0,)) == 15


def looked(*seconds: float) -> Exposure:
    """Looks after so many seconds, each with 1 request more of the canary and 9 of the control, answered within 1 s."""
    seen = Exposure()
    for number, second in enumerate(seconds, 1):
        control = Answers(9, 0, first_byte(ms1000=9), begun=9)
        at = NOW + timedelta(seconds=second)
        seen = exposed(seen, Evidence(at, Answers(begun=number), control, 1, 1, under_way=(number, 9)))
    return seen


def test_each_look_adds_its_requests_and_the_seconds_since_the_one_before() -> None:
    found = looked(1, 3.5, 3.25, 4.25)  # the clock was set back once
    assert found.recent == ((1, 9), (2, 9), (3, 9), (4, 9))
    assert found.seconds == (0.0, 2.5, 0.0, 1.0)
    assert (found.first_at, found.at) == (NOW + timedelta(seconds=1), NOW + timedelta(seconds=4.25))
    assert (found.canary, found.control, found.under_way) == (10, 36, (4, 9))
    assert found.first_byte == first_byte(ms1000=36)


def test_the_last_64_looks_are_kept() -> None:
    found = looked(*range(70))
    assert [recent for recent, _ in found.recent] == list(range(7, 71))
    assert found.seconds == (1.0,) * 64
    assert (found.canary, found.first_at) == (sum(range(71)), NOW)
