"""The judge in worlds where answers take time: what it promises holds when it looks each second."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import pytest

from domain.judge.evalues import good_enough
from domain.judge.judge import limits_of
from domain.judge.judge_spec import Judge
from domain.model.answer_counts import FIRST_BYTE_MS, Answers
from domain.model.canary import BothSides, EValue, Evidence
from tests.support.people.soak_report import leave, size
from tests.support.worlds.folding import each_folded, failures_of, good_of, harm_of

RUNS = size("judge_durations", 6)
SECONDS = 300
LIMIT_ABORT, LIMIT_PROMOTE = math.log(1 / 0.01), math.log(1 / 0.05)
NOW = datetime(2026, 3, 2, tzinfo=UTC)
STEADY = ((60, 0.0), (240, 0.05))
"""For so many seconds the canary gets this share."""
STEPS = ((60, 0.0), (60, 0.01), (60, 0.05), (60, 0.25), (60, 0.5))
A_TENTH = ((60, 0.0), (240, 0.1))
NEVER = 100_000
SPREAD = 0.3
"""Of the logarithm of how long requests take: of a hundred, one takes twice as long as the middle one."""
LONG_BEFORE = 240
"""So many seconds before the first look the first request came."""
STOPS = ((60, 0.0), (60, 0.1), (120, 0.0), (60, 0.1))


class Side(NamedTuple):
    """A share of requests fails after `fails_after` seconds, the others are answered after `answers_after`."""

    fails: float
    fails_after: float
    answers_after: float


def world(
    chance: np.random.Generator,
    canary: Side,
    control: Side,
    weights: Sequence[tuple[int, float]] = STEADY,
    a_second: int = 50,
    patience: float = math.inf,
    *,
    mended: bool = False,
    traffic: tuple[float, float] = (1, 1),
    spread: float = SPREAD,
) -> list[Evidence]:
    """What proxies tell each second. Who has waited for longer than `patience` leaves, and that is a failure.

    It continues for a while before the first look: what was sent then is under way, or ends, when it is looked at.
    `mended`: what fails is sent to another replica, which answers it. `traffic`: so many times `a_second` come at the
    first look and at the last one.
    """
    total = chance.poisson(max(traffic) * a_second * (LONG_BEFORE + SECONDS))
    begins = np.sort(chance.random(total) * (LONG_BEFORE + SECONDS)) - LONG_BEFORE
    begins = begins[chance.random(total) * max(traffic) < np.interp(begins, (0, SECONDS), traffic)]
    total = len(begins)
    weight = np.repeat([share for _, share in weights], [seconds for seconds, _ in weights])
    is_canary = (chance.random(total) < weight[np.maximum(begins, 0).astype(int)]) & (begins >= 0)
    fails, fails_after, answers_after = (np.where(is_canary, *both) for both in zip(canary, control, strict=True))
    failed = chance.random(total) < fails
    takes = np.where(failed, fails_after, answers_after) * chance.lognormal(0, spread, total)
    takes += np.where(failed & mended, answers_after, 0.0)
    left, takes = takes > patience, np.minimum(takes, patience)
    new, old = (_told(begins, takes, side, failed | left, left, mended=mended) for side in (is_canary, ~is_canary))
    return [
        Evidence(NOW + timedelta(seconds=at), its, others, 1, 1, under_way=(under_way, beside))
        for at, ((its, under_way), (others, beside)) in enumerate(zip(new, old, strict=True))
    ]


def _told(
    begins: np.ndarray, takes: np.ndarray, side: np.ndarray, failed: np.ndarray, left: np.ndarray, *, mended: bool
) -> list[tuple[Answers, int]]:
    """The answers of each second, and what is under way at its end."""
    ends = begins + takes

    def by_second(times: np.ndarray, which: np.ndarray) -> np.ndarray:
        seen = which & (times >= 0) & (times < SECONDS)
        return np.bincount(times[seen].astype(int), minlength=SECONDS)

    sent, done, bad = by_second(begins, side), by_second(ends, side), by_second(ends, side & failed)
    under_way = np.count_nonzero(side & (begins < 0) & (ends >= 0)) + np.cumsum(sent - done)
    first_byte = np.zeros((SECONDS, len(FIRST_BYTE_MS) + 1), int)
    answered = side & ~left & (ends >= 0) & (ends < SECONDS)
    np.add.at(first_byte, (ends[answered].astype(int), np.searchsorted(FIRST_BYTE_MS, 1000 * takes[answered])), 1)
    columns = zip(*(each.tolist() for each in (sent, done, bad, first_byte, under_way)), strict=True)
    return [
        (Answers(done, 0 if mended else bad, tuple(times), begun=sent, again=bad if mended else 0), now)
        for sent, done, bad, times, now in columns
    ]


def is_aborted(evidence: Sequence[Evidence]) -> bool:
    return harm_of(failures_of(evidence), 1) >= LIMIT_ABORT


def is_promoted(evidence: Sequence[Evidence]) -> bool:
    """Whether it ever is found good enough at its first weight."""
    return good_of(failures_of(evidence)[60:], 1, 0.01) >= LIMIT_PROMOTE


HANGS, FINE = Side(1, 400, 0.05), Side(0, 0.05, 0.05)
ALIKE = [
    *(Side(fails, 0.05, takes) for fails in (0.005, 0.05, 0.3) for takes in (0.2, 2, 10, 30, 60)),
    *(Side(fails, takes, 0.05) for fails in (0.005, 0.05, 0.3) for takes in (2, 10, 30, 60)),
]


@pytest.mark.parametrize("weights", [STEADY, STEPS, STOPS], ids=["steady", "steps", "stops"])
@pytest.mark.parametrize("alike", ALIKE, ids=str)
def test_an_identical_canary_is_hardly_ever_aborted(alike: Side, weights: Sequence[tuple[int, float]]) -> None:
    chance = np.random.default_rng([round(1000 * each) for each in (*alike, len(weights))])  # no two worlds alike
    aborted = sum(is_aborted(world(chance, alike, alike, weights)) for _ in range(RUNS)) / RUNS
    name = "-".join(f"{each:g}" for each in (*alike, len(weights)))
    leave(f"durations-{name}", false_aborts=aborted, rollouts=RUNS)
    assert aborted <= max(0.013, 1.5 / RUNS)


def seconds_until_unanswered(evidence: Sequence[Evidence]) -> float:
    """So many seconds at its first weight until it is harm that requests wait, whoever leaves."""
    limit = limits_of(Judge(), had_copies=False).harm
    for second, sums in enumerate(each_folded(Judge(refused=None, redirected=None), evidence), start=1):
        if sums.unanswered.highest - math.log(10) >= limit:
            return second - 60
    return math.inf


LONG = [Side(0, 0, 20), Side(0, 0, 60), Side(0.02, 15, 0.05), Side(0.08, NEVER, 0.05), Side(0.3, 30, 0.05)]


@pytest.mark.parametrize("weights", [STEADY, STEPS, STOPS], ids=["steady", "steps", "stops"])
@pytest.mark.parametrize("alike", LONG, ids=str)
def test_what_hangs_on_both_sides_alike_aborts_nobody(alike: Side, weights: Sequence[tuple[int, float]]) -> None:
    chance = np.random.default_rng([round(1000 * each) for each in (*alike, len(weights))])
    aborted = sum(seconds_until_unanswered(world(chance, alike, alike, weights)) < math.inf for _ in range(RUNS)) / RUNS
    leave(f"hang-{'-'.join(f'{each:g}' for each in (*alike, len(weights)))}", false_aborts=aborted, rollouts=RUNS)
    assert aborted <= max(0.013, 1.5 / RUNS)


@pytest.mark.parametrize("part", [0.08, 0.2, 1])
def test_a_canary_that_lets_callers_wait_for_ever_is_aborted_though_nobody_leaves(part: float) -> None:
    chance = np.random.default_rng(9)
    seconds = [
        seconds_until_unanswered(world(chance, Side(part, NEVER, 0.05), FINE, A_TENTH, 100)) for _ in range(RUNS)
    ]
    leave(f"unanswered-{part:g}", seconds=max(seconds), rollouts=RUNS)
    assert max(seconds) <= 12 / part


@pytest.mark.parametrize("fails", [0.002, 0.02, 0.3])
@pytest.mark.parametrize("after", [0.01, 5])
def test_what_is_sent_again_on_both_sides_alike_aborts_nobody(fails: float, after: float) -> None:
    chance, alike = np.random.default_rng([round(1000 * fails), round(after)]), Side(fails, after, 0.05)
    aborted = sum(is_aborted(world(chance, alike, alike, STEPS, mended=True)) for _ in range(RUNS)) / RUNS
    leave(f"mended-{fails:g}-{after:g}", false_aborts=aborted, rollouts=RUNS)
    assert aborted <= max(0.013, 1.5 / RUNS)


def test_a_canary_that_others_must_answer_for_is_aborted_though_no_caller_loses_anything() -> None:
    chance = np.random.default_rng(8)
    assert all(is_aborted(world(chance, Side(0.2, 0.01, 0.05), FINE, mended=True)) for _ in range(RUNS))


def test_impatient_callers_are_nobodys_fault() -> None:
    chance, alike = np.random.default_rng(2), Side(0, 1, 3)
    aborted = sum(is_aborted(world(chance, alike, alike, STEPS, patience=4)) for _ in range(RUNS)) / RUNS
    assert aborted <= max(0.013, 1.5 / RUNS)


def test_a_canary_that_answers_nobody_is_aborted_when_callers_leave_and_never_found_good() -> None:
    chance = np.random.default_rng(3)
    assert all(is_aborted(world(chance, HANGS, FINE, patience=3)) for _ in range(RUNS))
    assert not any(is_promoted(world(chance, HANGS, FINE)) for _ in range(RUNS))


def found_good(
    canary: Side, control: Side, a_second: int, traffic: tuple[float, float] = (1, 1), spread: float = SPREAD
) -> float:
    """The share of canaries that are found good at any look."""
    name = (*canary, a_second, *traffic, *((spread,) if spread != SPREAD else ()))
    chance = np.random.default_rng([round(1000 * each) for each in name])
    worlds = (world(chance, canary, control, A_TENTH, a_second, traffic=traffic, spread=spread) for _ in range(RUNS))
    found = sum(map(is_promoted, worlds))
    leave(f"late-{'-'.join(f'{each:g}' for each in name)}", false_promotions=found / RUNS, rollouts=RUNS)
    return found / RUNS


@pytest.mark.parametrize("a_second", [20, 50, 100, 300])
@pytest.mark.parametrize("after", [60, 120, NEVER])
@pytest.mark.parametrize("part", [0.02, 0.05, 0.08, 0.15, 0.2])
def test_a_canary_of_which_a_part_fails_late_or_hangs_is_seldom_found_good(
    part: float, after: int, a_second: int
) -> None:
    assert found_good(Side(part, after, 0.05), FINE, a_second) <= max(0.065, 1.5 / RUNS)


STEADY_RISING_FALLING = ((1, 1), (0.4, 1.6), (1.6, 0.4))


@pytest.mark.parametrize("traffic", STEADY_RISING_FALLING)
@pytest.mark.parametrize("takes", [0.2, 2, 10, 30, 60])
def test_a_part_that_hangs_does_not_hide_behind_answers_that_take_long(
    takes: float, traffic: tuple[float, float]
) -> None:
    assert found_good(Side(0.03, NEVER, takes), Side(0, takes, takes), 100, traffic) <= max(0.065, 1.5 / RUNS)


@pytest.mark.parametrize("traffic", STEADY_RISING_FALLING)
@pytest.mark.parametrize("takes", [2, 10])
def test_nor_behind_those_of_which_one_in_a_hundred_takes_ten_times_as_long(
    takes: float, traffic: tuple[float, float]
) -> None:
    found = found_good(Side(0.03, NEVER, takes), Side(0, takes, takes), 100, traffic, spread=1)
    assert found <= max(0.065, 1.5 / RUNS)


A_FIFTH = ((60, 0.0), (240, 0.2))


def seconds_until_good(takes: float, traffic: tuple[float, float]) -> float:
    """The median of canaries that are alike; endless where half of them are not found good."""
    chance, alike = np.random.default_rng([round(1000 * each) for each in (takes, *traffic)]), Side(0, 0, takes)
    seconds = [first_good(world(chance, alike, alike, A_FIFTH, 60, traffic=traffic)) for _ in range(max(RUNS, 12))]
    leave(f"good-{takes:g}-{traffic[0]:g}-{traffic[1]:g}", seconds=float(np.median(seconds)), rollouts=len(seconds))
    return float(np.median(seconds))


def first_good(evidence: Sequence[Evidence]) -> float:
    """So many seconds at its first weight, of 30 at least."""
    shown, here = EValue(), BothSides()
    for second, its in enumerate(failures_of(evidence)[60:], start=1):
        here = its.added_to(here)
        shown = good_enough(shown, its, here, 1.2, 0.01)
        if second >= 30 and shown.highest >= LIMIT_PROMOTE:
            return second
    return math.inf


@pytest.mark.parametrize("traffic", STEADY_RISING_FALLING)
def test_slow_answers_are_good_enough_nearly_as_soon_as_fast_ones(traffic: tuple[float, float]) -> None:
    """What was under way before the weight counts on both sides alike."""
    fast = seconds_until_good(0.05, traffic)
    assert seconds_until_good(2, traffic) <= 2 * fast
    assert seconds_until_good(6, traffic) <= 3 * fast
    assert seconds_until_good(20, traffic) <= 5 * fast


@pytest.mark.parametrize(("takes", "a_second"), [(0.05, 50), (2, 50), (10, 400), (30, 1500)])
def test_a_good_canary_is_found_good_however_long_its_answers_take(takes: float, a_second: int) -> None:
    chance, good = np.random.default_rng(5), Side(0.0005, 0.05, takes)
    quarter = ((60, 0.0), (240, 0.25))
    assert sum(is_promoted(world(chance, good, good, quarter, a_second)) for _ in range(RUNS)) >= 0.8 * RUNS
