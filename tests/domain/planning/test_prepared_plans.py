"""A plan of a rollout that prepares hosts first: how long that takes, and what it warns of."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.devices.ledger import Demand, Ledger
from domain.devices.needs import parse_resources
from domain.model.deployment import Deployment
from domain.model.preparation import Preparation, PreparationState
from domain.model.states import PREPARING
from domain.planning.plan_input import HostsAhead, Subject, after_activation
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import Plan, plan
from domain.steering.device_check import DeviceCase
from tests.support.people.people import request
from tests.support.pictures.pictures import NOW, PROVISIONING, READY, V3, deploying, resting, rolling_update

WAITING, RUNNING, DONE, _ = PreparationState
WEB = resting("■■■", status=READY)
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


@pytest.mark.parametrize(
    ("hosts", "status", "prepared"),
    [
        (HostsAhead(), PROVISIONING, ()),
        (HostsAhead(preparations=()), PREPARING, ()),
        (HostsAhead(preparations=(Preparation("h1", WAITING),)), PREPARING, (Preparation("h1", WAITING),)),
    ],
)
def test_an_activation_that_prepares_hosts_is_planned_with_them(
    hosts: HostsAhead, status: object, prepared: tuple[Preparation, ...]
) -> None:
    begun = after_activation(WEB, request(WEB, V3, rolling_update()), NOW, hosts)
    assert (begun.status, begun.preparations, begun.devices) == (status, prepared, None)


def test_an_activation_that_moves_the_pointer_alone_prepares_nothing() -> None:
    moved = after_activation(WEB, request(WEB, V3, None), NOW, HostsAhead(preparations=(Preparation("h1", WAITING),)))
    assert (moved.current_revision_id, moved.preparations) == (V3, ())


def test_an_activation_on_devices_is_planned_with_the_room_for_it() -> None:
    ledger = Ledger({"a": parse_resources("gpu=3")}, (), ("a",))
    begun = after_activation(
        WEB, request(WEB, V3, rolling_update()), NOW, HostsAhead(DeviceCase(Demand({"gpu": 1}), ledger))
    )
    assert begun.devices is not None
    assert begun.devices.free == {V3: 3}
