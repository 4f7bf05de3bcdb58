"""Plans of rollouts that would take minutes to foresee."""

import random

import pytest

from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import plan
from tests.support.pictures.pictures import NOW, deploying

TAUGHT = Timings(starts=(2.0, 3.0), stops=(1.0,), wakes=(0.1,))


def test_of_a_rollout_that_is_too_large_the_first_waves_are_told_and_that_there_are_more() -> None:
    found = plan(Subject(deploying("■" * 400 + "|", 400)), NOW, TAUGHT, random.Random(7).random)
    assert [(wave.create, wave.drain) for wave in found.waves[:3]] == [(1, 1)] * 3
    assert 50 < len(found.waves) < 400
    assert (found.is_cut, found.is_certain, found.ends_ready, found.seconds) == (True, False, False, None)
    assert found.warnings[0] == (
        f"only its first {len(found.waves)} waves are told: it is too large to be foreseen to its end"
    )
    assert not any("come to rest" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("work", "most", "runs"),
    [
        (80_000, 800_000, 100),  # small: as often as any
        (2_640, 80_000, 12),  # ten replicas take 220 looks: twelve times that
        (500, 80_000, 9),  # large: nine times all the same
        (500, 1_320, 6),  # larger: as often as the most allows
    ],
)
def test_the_larger_a_rollout_the_less_often_it_is_run(
    work: int, most: int, runs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("domain.planning.rollout_plan._WORK", work)
    monkeypatch.setattr("domain.planning.rollout_plan._MOST_WORK", most)
    source, times = random.Random(7), []

    def draw() -> float:
        times.append(source.random())
        return times[-1]

    plan(Subject(deploying("■" * 10 + "|", 10)), NOW, Timings(starts=(2.0, 3.0), stops=(1.0, 2.0)), draw)
    assert round(len(times) / 10 / 5.85) == runs, "each run draws a start, a stop and an order for each replica"
