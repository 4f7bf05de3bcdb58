"""Numbers of things and lengths of time in sentences."""

from datetime import timedelta

import pytest

from domain.text.numbers import all_of, duration, number_of


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
        (0.4, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (-71, "1 min 11 s"),
        (3599, "59 min 59 s"),
        (3600 + 60 * 20 + 59, "1 h 20 min"),
        (86_400 + 3600 * 23, "1 d 23 h"),
        (86_400 * 2 + 3600 * 5 + 3599, "2 d 5 h"),
    ],
)
def test_a_length_of_time_has_its_two_largest_units(seconds: float, said: str) -> None:
    assert duration(timedelta(seconds=seconds)) == said
