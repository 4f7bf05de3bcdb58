"""E-values worked out by hand, from the formulas in domain/judge/evalues.py; and from where on an answer is slow."""

import math
from datetime import UTC, datetime

import pytest

from domain.judge.evalues import Counts, good_enough, harm
from domain.judge.evidence import Evidence, slow_ones
from domain.traffic.answers import FIRST_BYTE_MS, Answers


def test_without_an_interval_there_is_no_evidence_of_anything() -> None:
    assert harm([], 1) == 0
    assert good_enough([], 1, 0.01) == 0


def test_harm_is_the_mean_over_how_much_worse_the_canary_may_be() -> None:
    """A twentieth of the answers and one failure of the canary, none of the control: θ0 = 0.05, θ2 = 0.1 / 1.05, ..."""
    thetas = [0.05 * worse / (0.05 * worse + 0.95) for worse in (1.5, 2, 3, 5, 10, 30)]
    e_value = sum(theta / 0.05 for theta in thetas) / 6
    assert harm([Counts(5, 1, 95, 0)], 1) == pytest.approx(math.log(e_value))
    both = sum(theta / 0.05 * (1 - theta) / 0.95 for theta in thetas) / 6
    assert harm([Counts(5, 1, 95, 1)], 1) == pytest.approx(math.log(both))


def test_harm_is_what_it_was_at_its_highest() -> None:
    bad, well = Counts(5, 5, 95, 0), Counts(5, 0, 95, 50)
    assert harm([bad, well], 1) == harm([bad], 1) > 0


def test_good_enough_is_the_mean_of_clean_answers_and_of_the_split() -> None:
    """Allowed is 1 %: 3 of 1,000 failed, so 997 were clean. A control without answers splits nothing: e-value 1."""
    rates = (0.001, 0.0025, 0.005)
    clean = sum((rate / 0.01) ** 3 * ((1 - rate) / 0.99) ** 997 for rate in rates) / 4  # of four: 0 % is refuted
    assert good_enough([Counts(1000, 3, 0, 0)], 1, 0.01) == pytest.approx(math.log((clean + 1) / 2))


def test_the_split_turned_round_holds_the_canary_against_twice_what_it_may() -> None:
    """One failure of the control and none of the canary, which has half of the answers: θ0 = 2 / 3."""
    split = ((1 - 1 / 2) / (1 / 3) + (1 - 1 / 3) / (1 / 3)) / 2
    clean = sum(((1 - rate) / 0.5) ** 10 for rate in (0, 0.05, 0.125, 0.25)) / 4
    assert good_enough([Counts(10, 0, 10, 1)], 1, 0.5) == pytest.approx(math.log((clean + split) / 2))


BUCKETS = len(FIRST_BYTE_MS) + 1


def first_bytes(**of_control: int) -> Evidence:
    """`first_bytes(ms3=4)`: four of the control's answers within 3 ms; the canary has one in each bucket."""
    control = tuple(of_control.get(f"ms{edge}", 0) for edge in (*FIRST_BYTE_MS, "_more"))
    return Evidence(datetime(2026, 1, 1, tzinfo=UTC), Answers(BUCKETS, 0, (1,) * BUCKETS), Answers(0, 0, control), 1, 1)


@pytest.mark.parametrize(
    ("before", "percentile", "slow_above"),
    [
        (first_bytes(ms1=100), 50, 1),
        (first_bytes(ms1=95, ms5=5), 95, 1),
        (first_bytes(ms1=94, ms5=6), 95, 5),
        (first_bytes(ms1=949, ms5=51), 95, 5),
        (first_bytes(ms1=50, ms5=49, ms300=1), 99, 5),
        (first_bytes(ms1=50, ms5=49, ms300=1), 99.9, 300),
        (first_bytes(ms1=10, ms_more=90), 50, math.inf),
    ],
)
def test_what_is_slow_is_beyond_the_bucket_of_the_percentile(
    before: Evidence, percentile: float, slow_above: float
) -> None:
    _, counts = slow_ones([before, first_bytes()], percentile)
    slow = sum(edge > slow_above for edge in (*FIRST_BYTE_MS, math.inf))
    assert (counts.canary, counts.canary_failed) == (BUCKETS, slow)
