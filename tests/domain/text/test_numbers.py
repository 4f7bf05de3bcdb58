"""Numbers of things and lengths of time in sentences."""

from datetime import timedelta

import pytest

from domain.text.numbers import WHOLE, all_of, doubling_pause, duration, number_of, percent, weight_of


@pytest.mark.parametrize(
    ("count", "number", "all_there_are"),
    [(0, "0 replicas", "all 0 replicas"), (1, "1 replica", "the one replica"), (3, "3 replicas", "all 3 replicas")],
)
def test_one_is_not_several(count: int, number: str, all_there_are: str) -> None:
    assert number_of(count, "replica") == number
    assert all_of(count, "replica") == all_there_are


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (1, "1 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (-71, "1 min 11 s"),
        (3599, "59 min 59 s"),
        (3600, "1 h"),
        (3600 + 60 * 20, "1 h 20 min"),
        (3600 + 60 * 20 + 59, "1 h 20 min"),
        (86_399, "23 h 59 min"),
        (86_400, "1 d"),
        (86_400 + 3599, "1 d"),
        (86_400 + 3600 * 23, "1 d 23 h"),
        (86_400 * 2 + 3600 * 5 + 3599, "2 d 5 h"),
    ],
)
def test_a_length_of_time_has_its_two_largest_units(seconds: float, said: str) -> None:
    assert duration(timedelta(seconds=seconds)) == said


@pytest.mark.parametrize(
    ("share", "weight", "shown"),
    [
        ("0%", 0, "0 %"),
        ("0.01%", 1, "0.01 %"),
        ("0.29%", 29, "0.29 %"),
        ("5%", 500, "5 %"),
        ("12.5%", 1250, "12.5 %"),
        ("100%", WHOLE, "100 %"),
    ],
)
def test_a_share_is_parts_of_the_whole_and_is_shown_as_it_was_written(share: str, weight: int, shown: str) -> None:
    assert weight_of(share) == weight
    assert percent(weight) == shown


@pytest.mark.parametrize(("tries", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (100_000, 10)])
def test_each_pause_is_twice_the_one_before_up_to_the_longest(tries: int, seconds: float) -> None:
    assert doubling_pause(tries, first=1, longest=10) == timedelta(seconds=seconds)
    assert doubling_pause(tries, first=0.5, longest=5) == timedelta(seconds=seconds / 2)
