"""What a judge counts as slow: from which bucket of the control's first bytes on."""

import math

import pytest

from domain.judge.evidence import slow_ones
from domain.model.answers import FIRST_BYTE_MS, Answers
from domain.model.canary import Evidence
from tests.domain.foresight.test_answered import first_byte
from tests.support.pictures.pictures import NOW

BUCKETS = len(FIRST_BYTE_MS) + 1
NOBODY_WAITED = first_byte()


def seen(control: tuple[int, ...]) -> Evidence:
    """The canary has one answer in each bucket."""
    return Evidence(NOW, Answers(BUCKETS, 0, (1,) * BUCKETS), Answers(0, 0, control), 1, 1)


@pytest.mark.parametrize(
    ("before", "percentile", "slow_above_ms"),
    [
        (first_byte(ms1=100), 50, 1),
        (first_byte(ms1=95, ms5=5), 95, 1),
        (first_byte(ms1=94, ms5=6), 95, 5),
        (first_byte(ms1=949, ms5=51), 95, 5),
        (first_byte(ms1=50, ms5=49, ms300=1), 99, 5),
        (first_byte(ms1=50, ms5=49, ms300=1), 99.9, 300),
        (first_byte(ms1=10, longer=90), 50, math.inf),
    ],
)
def test_what_is_slow_is_beyond_the_bucket_of_the_percentile(
    before: tuple[int, ...], percentile: float, slow_above_ms: float
) -> None:
    _, counts = slow_ones([seen(before), seen(NOBODY_WAITED)], percentile)
    assert counts.canary == BUCKETS
    assert counts.canary_failed == sum(edge > slow_above_ms for edge in (*FIRST_BYTE_MS, math.inf))


def test_before_a_hundred_answers_of_the_control_nothing_is_called_slow() -> None:
    judged = [slow_ones([seen(first_byte(ms1=known)), seen(NOBODY_WAITED)], 95)[1].canary for known in (99, 100)]
    assert judged == [0, BUCKETS]
