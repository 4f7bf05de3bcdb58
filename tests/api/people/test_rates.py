"""How often who may ask."""

import time

import pytest

from api.people.asking.rates import Rates
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
