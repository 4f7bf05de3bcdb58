"""The judge of slow answers, in whole streams of requests: a canary that is later by less than its size is not aborted.

In `make soak` 200 canaries of each, in `make judge` 5,000 of some; looked at each second.
"""

import math

import numpy as np
import pytest

from domain.judge.judge_spec import Judge, Slow, times
from tests.support.people.soak_report import leave, size
from tests.support.worlds.folding import folded, harm_of, slow_of
from tests.support.worlds.streams import BEFORE, Side, stream

RUNS = size("judge_slow", 4)
LIMIT = math.log(1 / 0.01)


def aborted(canary: Side, control: Side, slow: Slow, runs: int = RUNS) -> float:
    """The share of canaries that show harm at any look."""
    chance = np.random.default_rng([round(10_000 * each) for each in (canary.median, canary.spread, canary.later)])
    seen = (stream(chance, canary, control).evidence() for _ in range(runs))
    return sum(harm_of(slow_of(evidence, slow), times(slow.worse_than)) >= LIMIT for evidence in seen) / runs


@pytest.mark.parametrize(
    ("median", "later", "factor", "by_at_least"),
    [
        (0.02, 0.0, 1.0, "20%"),
        (0.0005, 0.0003, 1.0, "20%"),
        (0.0015, 0.0003, 1.0, "20%"),
        (0.0015, 0.0003, 1.0, "1ms"),
        (0.019, 0.0015, 1.0, "20%"),
        (0.2, 0.0, 1.19, "20%"),
        (3.0, 0.0, 1.19, "20%"),
        (0.2, 0.049, 1.0, "50ms"),
    ],
)
@pytest.mark.parametrize("spread", [0.05, 0.5, 1.0])
def test_a_canary_that_is_later_by_less_than_that_is_hardly_ever_aborted(
    median: float, later: float, factor: float, by_at_least: str, spread: float
) -> None:
    control = Side(fails=0, median=median, spread=spread)
    canary = Side(fails=0, median=median, spread=spread, times=factor, later=later)
    found = aborted(canary, control, Slow(by_at_least=by_at_least))
    leave(f"slow-{median}-{later}-{factor}-{by_at_least}-{spread}", false_aborts=found, rollouts=RUNS)
    assert found <= max(0.013, 1.5 / RUNS)


def test_a_canary_that_starts_cold_has_its_time_to_warm_up() -> None:
    cold, warm = Side(cold=5), Side()
    assert aborted(cold, warm, Slow()) <= max(0.013, 1.5 / RUNS)
    assert aborted(cold, warm, Slow(warm_up="0s"), 4) == 1, "and without it is aborted each time"


@pytest.mark.parametrize(("median", "factor"), [(0.02, 2), (0.2, 1.5), (3, 1.5)])
def test_a_canary_that_is_later_by_much_more_is_aborted(median: float, factor: float) -> None:
    assert aborted(Side(median=median, times=factor), Side(median=median), Slow(), 4) == 1


FOR_EVER = 1_000_000.0
WAITING = Judge(slow=Slow(warm_up="0s"))


def aborted_for_waiting(canary: Side, control: Side, *, bursts: bool = False) -> float:
    """The share of canaries that are aborted for those of their requests that wait; no caller ever leaves.

    What the control was sent in the first half minute is under way when the first interval begins.
    """
    chance = np.random.default_rng([round(1000 * each) for each in (canary.hangs, canary.median, canary.spread)])
    seen = (stream(chance, canary, control, bursts=bursts, patience=FOR_EVER).evidence() for _ in range(RUNS))
    return sum(folded(WAITING, evidence[30:]).waiting.highest >= LIMIT for evidence in seen) / RUNS


@pytest.mark.parametrize("hangs", [0.0, 0.02, 0.2, 0.7, 1.0])
@pytest.mark.parametrize(("median", "spread"), [(0.02, 0.3), (0.5, 1.5), (3, 1), (30, 0.3)])
def test_an_identical_canary_is_hardly_ever_aborted_for_what_waits(hangs: float, median: float, spread: float) -> None:
    alike = Side(fails=0.01, median=median, spread=spread, hangs=hangs)
    assert aborted_for_waiting(alike, alike) <= max(0.013, 1.5 / RUNS)
    assert aborted_for_waiting(alike, alike, bursts=True) <= max(0.013, 1.5 / RUNS)


@pytest.mark.parametrize(("hangs", "seconds"), [(1.0, 20), (0.5, 45), (0.2, 120)])
def test_a_canary_that_answers_nobody_is_aborted_though_nobody_leaves(hangs: float, seconds: int) -> None:
    found = stream(np.random.default_rng(6), Side(hangs=hangs), Side(), patience=FOR_EVER)
    evidence = found.evidence(BEFORE + seconds)
    assert folded(WAITING, evidence).waiting.highest >= math.log(3 * 2 / 0.01), (
        "beside two measures more, and its own slow answers"
    )


def test_so_is_one_that_answers_after_half_a_minute_where_the_control_takes_20_ms() -> None:
    found = stream(np.random.default_rng(7), Side(median=30), Side())
    assert folded(WAITING, found.evidence(BEFORE + 25)).waiting.highest >= math.log(3 * 2 / 0.01)
