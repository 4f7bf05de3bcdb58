"""A plan of a rollout that prepares hosts first: how long that takes, and what it warns of."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.model.deployment import Deployment
from domain.model.preparation import Preparation, PreparationState
from domain.model.states import PREPARING
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import Plan, plan
from tests.support.pictures.pictures import NOW, deploying

WAITING, RUNNING, DONE, _ = PreparationState
TAUGHT = Timings(starts=(2.0,) * 9, stops=(1.0,), preparations=(60.0,) * 9)


def preparing(*states: PreparationState, seconds: float | None = None) -> Deployment:
    hosts = tuple(
        Preparation(f"h{number}", state, seconds=seconds if state is RUNNING else None)
        for number, state in enumerate(states, 1)
    )
    return replace(deploying("■■■|"), status=PREPARING, preparations=hosts)


def planned(deployment: Deployment, learned: Timings = TAUGHT) -> Plan:
    return plan(Subject(deployment), NOW, learned, random.Random(7).random)


@pytest.mark.parametrize(
    ("deployment", "begins"),
    [
        (preparing(WAITING), 60),
        (preparing(WAITING, WAITING), 60),
        (preparing(WAITING, WAITING, WAITING), 120),
        (preparing(*[WAITING] * 5), 180),
        (preparing(DONE, WAITING, DONE, WAITING), 60),
        (preparing(DONE, WAITING, WAITING, RUNNING, seconds=45.0), 75),
        (preparing(RUNNING, seconds=600.0), 0),
        (preparing(DONE, DONE), 0),
        (preparing(), 0),
    ],
)
def test_two_hosts_at_a_time_and_then_the_first_replicas(deployment: Deployment, begins: float) -> None:
    foreseen = planned(deployment)
    prepared, first, *_ = foreseen.waves
    assert (prepared.create, prepared.drain, first.create, first.drain) == (0, 0, 1, 1)
    assert first.begins is not None
    assert begins <= first.begins.p50 < begins + 1.0
    assert foreseen.warnings == ()


def test_no_preparation_is_on_record_so_its_time_is_left_out() -> None:
    learned = replace(TAUGHT, preparations=())
    foreseen = planned(preparing(DONE, WAITING), learned)
    assert foreseen.warnings == ("1 host to be prepared first, and none was yet: that time comes on top",)
    assert foreseen.waves[1].begins is not None
    assert foreseen.waves[1].begins.p90 < 1.0


def test_deadlines_stop_meanwhile() -> None:
    deployment = preparing(WAITING)
    assert deployment.rollout is not None
    deployment = replace(deployment, rollout=replace(deployment.rollout, deadline=NOW + timedelta(seconds=40)))
    assert planned(deployment).ends_ready
