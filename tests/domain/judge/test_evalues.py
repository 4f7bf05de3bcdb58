"""E-values worked out by hand, from the formulas in domain/judge/evalues.py."""

import math

import pytest

from domain.judge.evalues import Counts
from tests.support.worlds.folding import good_of, harm_of


def test_without_an_interval_there_is_no_evidence_of_anything() -> None:
    assert harm_of([], 1) == 0
    assert good_of([], 1, 0.01) == 0


def test_harm_is_the_mean_over_how_much_worse_the_canary_may_be() -> None:
    """A twentieth of the answers and one failure of the canary, none of the control: θ0 = 0.05, θ2 = 0.1 / 1.05, ..."""
    thetas = [0.05 * worse / (0.05 * worse + 0.95) for worse in (1.5, 2, 3, 5, 10, 30)]
    e_value = sum(theta / 0.05 for theta in thetas) / 6
    assert harm_of([Counts(5, 1, 95, 0)], 1) == pytest.approx(math.log(e_value))
    both = sum(theta / 0.05 * (1 - theta) / 0.95 for theta in thetas) / 6
    assert harm_of([Counts(5, 1, 95, 1)], 1) == pytest.approx(math.log(both))


def test_harm_is_what_it_was_at_its_highest() -> None:
    bad, well = Counts(5, 5, 95, 0), Counts(5, 0, 95, 50)
    assert harm_of([bad, well], 1) == harm_of([bad], 1) > 0


def test_good_enough_is_the_mean_of_clean_answers_and_of_the_split() -> None:
    """Allowed is 1 %: 3 of 1,000 failed, so 997 were clean. A control without answers splits nothing: e-value 1."""
    rates = (0.001, 0.0025, 0.005)
    clean = sum((rate / 0.01) ** 3 * ((1 - rate) / 0.99) ** 997 for rate in rates) / 4  # of four: 0 % is refuted
    assert good_of([Counts(1000, 3, 0, 0)], 1, 0.01) == pytest.approx(math.log((clean + 1) / 2))


def test_the_split_turned_round_holds_the_canary_against_twice_what_it_may() -> None:
    """One failure of the control and none of the canary, which has half of the answers: θ0 = 2 / 3."""
    split = ((1 - 1 / 2) / (1 / 3) + (1 - 1 / 3) / (1 / 3)) / 2
    clean = sum(((1 - rate) / 0.5) ** 10 for rate in (0, 0.05, 0.125, 0.25)) / 4
    assert good_of([Counts(10, 0, 10, 1)], 1, 0.5) == pytest.approx(math.log((clean + split) / 2))


def test_what_is_under_way_counts_as_failed_and_splits_nothing_where_only_the_canary_is_asked() -> None:
    clean = sum((rate / 0.01) ** 5 * ((1 - rate) / 0.99) ** 997 for rate in (0.001, 0.0025, 0.005)) / 4
    assert good_of([Counts(1000, 3, 0, 0, waiting=2)], 1, 0.01) == pytest.approx(math.log((clean + 1) / 2))
    share, null = 0.5, 2 / 3
    split = sum((theta / null) ** 2 for theta in (share, 1 / 3)) / 2
    lost = sum((rate / 0.5) ** 2 * ((1 - rate) / 0.5) ** 10 for rate in (0.05, 0.125, 0.25)) / 4
    assert good_of([Counts(10, 0, 10, 0, waiting=2)], 1, 0.5) == pytest.approx(math.log((lost + split) / 2))
