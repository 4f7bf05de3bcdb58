"""Numbers of things in sentences."""

import pytest

from domain.numbers import all_of, number_of


@pytest.mark.parametrize(
    ("count", "number", "all_there_are"),
    [(0, "0 replicas", "all 0 replicas"), (1, "1 replica", "the one replica"), (3, "3 replicas", "all 3 replicas")],
)
def test_one_is_not_several(count: int, number: str, all_there_are: str) -> None:
    assert number_of(count, "replica") == number
    assert all_of(count, "replica") == all_there_are
