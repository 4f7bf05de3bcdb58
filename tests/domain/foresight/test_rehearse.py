"""A rehearsal: what many runs with drawn times and failures come to."""

import random

import pytest

from domain.foresight.plan.subject import Subject
from domain.foresight.rehearsal.learned import Learned
from domain.foresight.rehearsal.rehearse import Band, Rehearsal, rehearse
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from tests.support.pictures.pictures import NOW, blue_green, deploying, rolling_update


def rehearsed(deployment: Deployment, learned: Learned, runs: int = 100) -> Rehearsal:
    return rehearse(Subject(deployment), NOW, learned, random.Random(3).random, runs)


def test_where_starts_always_take_as_long_every_run_does() -> None:
    found = rehearsed(deploying("■■■|"), Learned((2.0,), (1.0,)))
    assert (found.runs, found.completed, found.went_back, found.unsettled) == (100, 100, 0, 0)
    assert found.done["p50"] == found.done["p99"] == 6
    assert list(found.done) == ["p5", "p25", "p50", "p75", "p90", "p95", "p99"]
    assert found.fewest_serving == {2: 100}
    assert [found.chance_to_be_done_by(seconds) for seconds in (5.9, 6.0)] == [0, 1]


@pytest.mark.parametrize(("failed", "least", "most"), [(0, 0.0, 0.0), (1, 0.0, 0.3), (30, 1.0, 1.0)])
def test_the_chance_to_go_back_follows_the_failures_of_the_past(failed: int, least: float, most: float) -> None:
    learned = Learned((2.0,) * 10 if failed < 30 else (2.0,) * 1, (1.0,), failed_starts=failed)
    found = rehearsed(deploying("■■■|"), learned)
    assert least <= found.chance_to_go_back <= most
    assert found.completed + found.went_back == found.runs
    assert bool(found.why_back) is bool(found.went_back)
    if found.why_back:
        assert found.why_back == ("3 new replicas failed, the limit is 3",)


@pytest.mark.parametrize("policy", [rolling_update(), rolling_update(2, 0), blue_green(auto_promote=True)])
def test_the_fewer_rollouts_taught_the_wider_is_the_band(policy: DeploymentPolicy) -> None:
    chance = random.Random(5)
    starts = tuple(chance.lognormvariate(1, 0.5) for _ in range(150))
    found = rehearsed(deploying("■■■|", policy=policy), Learned(starts, (1.0,)))
    assert found.band == Band.of(found.seconds, taught=25)
    widths = [band.high - band.low for band in (Band.of(found.seconds, taught) for taught in (1, 20, 50, 1000))]
    assert widths == sorted(widths, reverse=True)
    assert Band.of(found.seconds, 1) == Band(found.seconds[0], found.seconds[-1])


def test_a_rollout_is_expected_to_take_as_long_as_the_last_ones() -> None:
    slower = (1.0,) * 30 + (2.0,) * 6
    found = rehearsed(deploying("■■■|"), Learned(slower))
    assert found.done["p50"] == 6.0


def test_runs_that_go_back_are_never_done() -> None:
    found = rehearsed(deploying("■■■|"), Learned((2.0,), (1.0,), failed_starts=2), runs=200)
    assert 0 < found.completed < found.runs
    assert found.done["p99"] is None
    assert found.chance_to_be_done_by(10**6) == found.completed / found.runs


def test_the_same_draws_give_the_same_rehearsal() -> None:
    learned = Learned((1.0, 2.0, 5.0), (1.0,), failed_starts=1)
    assert rehearsed(deploying("■■■|"), learned) == rehearsed(deploying("■■■|"), learned)


def test_a_rehearsal_as_json_is_plain_and_leaves_out_the_single_times() -> None:
    document = rehearsed(deploying("■■■|"), Learned((1.0,))).as_json()
    assert document["chance_to_go_back"] == 0
    assert "seconds" not in document
