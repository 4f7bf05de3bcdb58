"""Plans of rollouts that would take minutes to foresee."""

import random

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
