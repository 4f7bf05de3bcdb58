"""The judge in simulated worlds: how often it errs when it looks after every interval; in `make soak` 2,000 of each."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from domain.judge.evalues import Counts
from tests.support.people.soak_report import leave, size
from tests.support.worlds.folding import good_of, harm_of

RUNS = size("judge", 60)
INTERVALS = 300
ALPHA_ABORT, ALPHA_PROMOTE = 0.01, 0.05
LIMIT_ABORT, LIMIT_PROMOTE = math.log(1 / ALPHA_ABORT), math.log(1 / ALPHA_PROMOTE)


def world(chance: np.random.Generator, canary: float, control: float, **how: bool) -> list[Counts]:
    """Some 100 answers an interval, 5 % of them the canary's; failures at these rates."""
    answers = chance.poisson(100, INTERVALS)
    weights = np.repeat([0.05, 0.25, 0.5], INTERVALS // 3) if how.get("steps") else np.full(INTERVALS, 0.05)
    new = chance.binomial(answers, weights)
    bursts = chance.random(INTERVALS) < 0.02 if how.get("bursts") else np.zeros(INTERVALS, bool)
    rates = [np.where(bursts, np.maximum(rate, 0.3), rate) for rate in (canary, control)]
    failed, others = chance.binomial(new, rates[0]), chance.binomial(answers - new, rates[1])
    columns = np.stack([new, failed, answers - new, others], axis=1)
    if how.get("uneven"):
        places = np.flatnonzero(chance.random(INTERVALS) < 0.4)
        columns = np.add.reduceat(columns, [0, *places[places > 0]])
    return [Counts(new, failed, old, others) for new, failed, old, others in columns.tolist()]


def share(name: str, found: Callable[[np.random.Generator], bool], runs: int = RUNS) -> float:
    chance = np.random.default_rng(random.Random(name).randrange(2**32))
    return sum(found(chance) for _ in range(runs)) / runs


@pytest.mark.parametrize("how", ["plain", "bursts", "steps", "uneven"])
@pytest.mark.parametrize("rate", [0, 0.001, 0.01, 0.05, 0.3])
def test_a_canary_that_is_no_worse_is_hardly_ever_aborted(rate: float, how: str) -> None:
    aborted = share(f"{how} {rate}", lambda chance: harm_of(world(chance, rate, rate, **{how: True}), 1) >= LIMIT_ABORT)
    leave(f"judge-{how}-{rate}", false_aborts=aborted, rollouts=RUNS)
    # 1 % by the theory; of few runs one more than that may be
    assert aborted <= max(0.013, 1.5 / RUNS)


def copied(chance: np.random.Generator, rate: float, canary: float, *, alike: bool) -> list[Counts]:
    """Some 100 requests an interval, of which every tenth is copied; `alike`: what fails fails on both sides."""
    found = []
    for requests in chance.poisson(100, INTERVALS):
        fails, is_copied = chance.random(requests), chance.random(requests) < 0.1
        copy_fails = fails if alike else chance.random(requests)
        found.append(Counts(1000, int(((copy_fails < canary) & is_copied).sum()), 10_000, int((fails < rate).sum())))
    return found


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("rate", [0.001, 0.05, 0.5])
def test_a_canary_whose_copies_are_no_worse_is_hardly_ever_aborted(rate: float, alike: bool) -> None:  # noqa: FBT001
    name = f"copies {rate} {alike}"
    aborted = share(name, lambda chance: harm_of(copied(chance, rate, rate, alike=alike), 1) >= LIMIT_ABORT)
    assert aborted <= max(0.013, 1.5 / RUNS)


def test_a_canary_that_fails_its_copies_is_aborted_before_any_caller_meets_it() -> None:
    found = share("copies", lambda chance: harm_of(copied(chance, 0.01, 0.2, alike=True), 1) >= LIMIT_ABORT, 20)
    assert found > 0.9


def callers(chance: np.random.Generator, *, sticky: bool) -> list[Counts]:
    """Some 5 callers an interval ask 20 times each; 1 % of them fail each time, whoever answers."""
    found = []
    for fine, failing in zip(chance.poisson(5 * 0.99, INTERVALS), chance.poisson(5 * 0.01, INTERVALS), strict=True):
        of_a_choice = 20 if sticky else 1
        new, failed = (of_a_choice * int(chance.binomial(20 // of_a_choice * n, 0.05)) for n in (fine, failing))
        found.append(Counts(new + failed, failed, 20 * int(fine + failing) - new - failed, 20 * int(failing) - failed))
    return found


def test_failures_that_follow_a_sticky_caller_are_more_than_the_chances_say() -> None:
    def aborts(*, sticky: bool) -> float:
        return share(f"sticky {sticky}", lambda chance: harm_of(callers(chance, sticky=sticky), 1) >= LIMIT_ABORT)

    shared, kept = aborts(sticky=False), aborts(sticky=True)
    leave("judge-sticky", shared=shared, kept=kept, rollouts=RUNS)
    assert shared <= max(0.013, 1.5 / RUNS)
    assert kept > 0.1, "docs/internals/canary-judge.md says how often, and to whom that happens"


def test_a_canary_that_fails_beside_a_control_that_does_not_is_aborted() -> None:
    found = share("0 and 2 %", lambda chance: harm_of(world(chance, 0.02, 0), 1) >= LIMIT_ABORT, max(RUNS // 4, 20))
    assert found > 0.99


def test_a_canary_that_is_just_worse_than_allowed_is_seldom_found_good() -> None:
    found = share("1 % of 0", lambda chance: good_of(world(chance, 0.01, 0), 1, 0.01) >= LIMIT_PROMOTE)
    assert found <= max(0.065, 4.5 / RUNS)
    found = share("twice", lambda chance: good_of(world(chance, 0.06, 0.03), 1, 0.01) >= LIMIT_PROMOTE)
    assert found <= max(0.065, 4.5 / RUNS)


def test_a_canary_that_is_as_good_is_found_good() -> None:
    for rate in (0, 0.001, 0.05):

        def is_found(chance: np.random.Generator, rate: float = rate) -> bool:
            return good_of(world(chance, rate, rate), 1.2, 0.01) >= LIMIT_PROMOTE

        assert share(f"good {rate}", is_found, min(RUNS, 500)) > 0.9, rate
