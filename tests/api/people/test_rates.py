"""How often who may ask."""

import time

import pytest

from api.people.asking.access import Rates
from api.people.problems import TooManyRequestsError


def test_a_bucket_gives_so_many_at_once_and_then_as_many_as_time_brings() -> None:
    rates = Rates(rate=2, burst=4)
    for _ in range(4):
        rates.take("ann")
    with pytest.raises(TooManyRequestsError, match="ann may ask 2 times a second for long; ask again in 1 s"):
        rates.take("ann")
    rates.take("bob")
    time.sleep(0.5)  # what time brings is what is tested
    rates.take("ann")


def test_who_has_spent_more_than_was_left_waits_the_longer() -> None:
    rates = Rates(rate=0.5, burst=4)
    rates.spend("ann", 10)
    with pytest.raises(TooManyRequestsError, match="too long; ask again in 14 s") as refused:
        rates.refuse_spent("ann", "ann thought too long")
    assert refused.value.detail["seconds"] == 14
    rates.refuse_spent("bob", "bob thought too long")
