"""The judge in worlds where answers take time: what it promises holds when it looks each second."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
import pytest

from domain.model.answers import Answers
from domain.model.canary import Evidence
from tests.support.people.soak_report import leave, size
from tests.support.worlds.folding import failures_of, good_of, harm_of

RUNS = size("judge_durations", 6)
SECONDS = 300
LIMIT_ABORT, LIMIT_PROMOTE = math.log(1 / 0.01), math.log(1 / 0.05)
NOW = datetime(2026, 3, 2, tzinfo=UTC)
STEADY = ((60, 0.0), (240, 0.05))
"""For so many seconds the canary gets this share."""
STEPS = ((60, 0.0), (60, 0.01), (60, 0.05), (60, 0.25), (60, 0.5))
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
) -> list[Evidence]:
    """What proxies tell each second. Who has waited for longer than `patience` leaves, and that is a failure.

    `mended`: what fails is sent to another replica, which answers it.
    """
    total = chance.poisson(a_second * SECONDS)
    begins = np.sort(chance.random(total) * SECONDS)
    weight = np.repeat([share for _, share in weights], [seconds for seconds, _ in weights])[begins.astype(int)]
    is_canary = chance.random(total) < weight
    fails, fails_after, answers_after = (np.where(is_canary, *both) for both in zip(canary, control, strict=True))
    failed = chance.random(total) < fails
    takes = np.where(failed, fails_after, answers_after) * chance.lognormal(0, 0.3, total)
    takes += np.where(failed & mended, answers_after, 0.0)
    failed, takes = failed | (takes > patience), np.minimum(takes, patience)

    def by_second(times: np.ndarray, which: np.ndarray) -> list[int]:
        return [int(count) for count in np.bincount(times[which].astype(int), minlength=SECONDS)[:SECONDS]]

    ends = np.minimum(begins + takes, 2.0 * SECONDS)
    sides = [
        [by_second(begins, side), by_second(ends, side), by_second(ends, side & failed)]
        for side in (is_canary, ~is_canary)
    ]
    answers = [
        [Answers(done, 0 if mended else bad, begun=sent, again=bad if mended else 0) for sent, done, bad in zip(*side)]  # noqa: B905
        for side in sides
    ]
    return [
        Evidence(NOW + timedelta(seconds=at), new, old, 1, 1)
        for at, (new, old) in enumerate(zip(*answers, strict=True))
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


A_TENTH = ((60, 0.0), (240, 0.1))
NEVER = 100_000


def found_good(canary: Side, control: Side, a_second: int) -> float:
    """The share of canaries that are found good at any look."""
    chance = np.random.default_rng([round(1000 * each) for each in (*canary, a_second)])
    found = sum(is_promoted(world(chance, canary, control, A_TENTH, a_second)) for _ in range(RUNS)) / RUNS
    leave(f"late-{'-'.join(f'{each:g}' for each in (*canary, a_second))}", false_promotions=found, rollouts=RUNS)
    return found


@pytest.mark.parametrize("a_second", [20, 50, 100, 300])
@pytest.mark.parametrize("after", [60, 120, NEVER])
@pytest.mark.parametrize("part", [0.02, 0.05, 0.08, 0.15, 0.2])
def test_a_canary_of_which_a_part_fails_late_or_hangs_is_seldom_found_good(
    part: float, after: int, a_second: int
) -> None:
    assert found_good(Side(part, after, 0.05), FINE, a_second) <= max(0.065, 1.5 / RUNS)


@pytest.mark.parametrize("takes", [0.2, 2, 10, 30])
def test_a_part_that_hangs_does_not_hide_behind_answers_that_take_long(takes: float) -> None:
    assert found_good(Side(0.03, NEVER, takes), Side(0, takes, takes), 100) <= max(0.065, 1.5 / RUNS)


@pytest.mark.parametrize(("takes", "a_second"), [(0.05, 50), (2, 50), (10, 400), (30, 1500)])
def test_a_good_canary_is_found_good_however_long_its_answers_take(takes: float, a_second: int) -> None:
    chance, good = np.random.default_rng(5), Side(0.0005, 0.05, takes)
    quarter = ((60, 0.0), (240, 0.25))
    assert sum(is_promoted(world(chance, good, good, quarter, a_second)) for _ in range(RUNS)) >= 0.8 * RUNS
