"""Sleepers that have lent their devices: who is woken in place of a new replica, and who waits for whom."""

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.cycle.effects import routes_after
from domain.cycle.evaluator import EVALUATOR, contained
from domain.devices.room import DeviceRoom
from domain.handlers.scaling import ScalingHandler
from domain.model.decision import Decision, WaitsFor
from domain.model.deployment import Deployment
from domain.model.states import Lifecycle, TrafficStatus
from domain.strategies.in_place import with_devices
from tests.support.pictures.pictures import (
    NOW,
    ROLLING_BACK,
    V1,
    V2,
    blue_green,
    deploying,
    happens,
    resting,
    rolling_back,
    route_id,
)

IN_PLACE = (1, 1)


def on_devices(
    deployment: Deployment, free: int, asleep: Collection[int] = (), able: Collection[int] = ()
) -> Deployment:
    """`asleep`: the routes that have lent their devices, by their places; `able`: those whose devices are free now."""
    sleeping = {route_id(number) for number in asleep}
    until = NOW + timedelta(minutes=10)
    routes = tuple(replace(r, parked_until=until) if r.id in sleeping else r for r in deployment.routes)
    lent = {route_id(number): number in able for number in asleep}
    room = DeviceRoom({V1: free, V2: free}, dict.fromkeys((V1, V2), "a GPU"), lent=lent, sleepers=(V1, V2))
    return with_devices(replace(deployment, routes=routes), room)


def decision_of(deployment: Deployment) -> Decision:
    if deployment.status.lifecycle is Lifecycle.SCALING:
        return contained(ScalingHandler().decide, [deployment], NOW).assignments[deployment.id]
    decide = EVALUATOR.evaluate_back if deployment.status == ROLLING_BACK else EVALUATOR.evaluate_one
    return contained(decide, [deployment], NOW).assignments[deployment.id]


def does(deployment: Deployment) -> str:
    return happens(deployment, decision_of(deployment))


@pytest.mark.parametrize(
    ("free", "able", "step"),
    [
        (1, [1], "wake ◇"),
        (0, [], "wait"),
        (1, [], "create 1"),
    ],
)
def test_an_undo_wakes_a_sleeper_whose_devices_are_free_and_starts_another_one_elsewhere(
    free: int, able: list[int], step: str
) -> None:
    undo = on_devices(deploying("■|◌", n=1, policy=blue_green(auto_promote=True)), free, [1], able)
    decision = decision_of(undo)
    assert happens(undo, decision) == step
    if able:
        assert decision.changes.woken == ((route_id(1), TrafficStatus.INACTIVE),)
        assert decision.reason.endswith("; 1 of them by waking a sleeping one")
        (woken,) = [r for r in routes_after(undo.routes, decision.changes, NOW) if r.id == route_id(1)]
        assert (woken.has_lent, woken.parked_until, woken.traffic) == (False, None, TrafficStatus.INACTIVE)


def test_of_three_that_are_missing_two_wake_and_one_starts() -> None:
    undo = on_devices(deploying("■■■|◌◌◌", policy=blue_green(auto_promote=True)), 3, [3, 4, 5], [3, 5])
    decision = decision_of(undo)
    assert happens(undo, decision) == "create 1, wake ◇◇"
    assert [woken for woken, _ in decision.changes.woken] == [route_id(3), route_id(5)]


def test_an_abort_in_place_takes_one_after_the_other_from_its_device_and_wakes_who_slept_there() -> None:
    """Two devices: v1 sleeps on both, and v2 serves there."""
    full = on_devices(rolling_back("◌◌|■■", 2, *IN_PLACE), 0, [0, 1])
    assert does(full) == "drain ■"
    stopping = on_devices(rolling_back("◌◌|■~", 2, *IN_PLACE), 0, [0, 1])
    assert does(stopping) == "wait"
    free = on_devices(rolling_back("◌◌|■", 2, *IN_PLACE), 1, [0, 1], [0])
    assert decision_of(free).changes.woken == ((route_id(0), TrafficStatus.ACTIVE),)
    waking = on_devices(rolling_back("◇◌|■", 2, *IN_PLACE), 0, [1])
    assert does(waking) == "wait"
    awake = on_devices(rolling_back("■◌|■", 2, *IN_PLACE), 0, [1])
    assert does(awake) == "drain ■"
    last = on_devices(rolling_back("■◌|", 2, *IN_PLACE), 1, [1], [1])
    assert does(last) == "wake ◇"
    assert does(on_devices(rolling_back("■■|", 2, *IN_PLACE), 0)) == "completed"


@pytest.mark.parametrize(
    ("n", "able", "step"),
    [(2, [0], "wait"), (3, [], "wait"), (3, [0], "wake ◇")],
)
def test_while_it_is_paused_who_sleeps_stays_asleep_until_one_dies_and_its_device_is_free(
    n: int, able: list[int], step: str
) -> None:
    paused = deploying("◌■|■", n, *IN_PLACE, paused_at=NOW, rollout={"steps": 1})
    assert does(on_devices(paused, len(able), [0], able)) == step


@pytest.mark.parametrize(
    ("picture", "n", "free", "step"),
    [("|■◌", 1, 1, "completed"), ("|■◌", 2, 1, "wake ◇"), ("|■◌", 2, 0, "wait")],
)
def test_at_rest_a_sleeper_counts_for_nothing_until_one_more_is_wanted(
    picture: str, n: int, free: int, step: str
) -> None:
    scaled = on_devices(resting(picture, n), free, [1], [1] if free else [])
    assert does(scaled) == step


@pytest.mark.parametrize(
    ("picture", "status_for", "step"),
    [("▫|", 3600, "wait"), ("◌|", 29, "wait"), ("◌|", 30, "drain ◇"), ("△|", 3600, "drain △")],
)
def test_a_parked_one_that_falls_asleep_is_waited_for_and_any_other_is_in_the_way(
    picture: str, status_for: float, step: str
) -> None:
    deployment = resting(picture, 1, status_for=status_for)
    routes = tuple(
        replace(route, parked_until=NOW + timedelta(hours=1), traffic=TrafficStatus.INACTIVE)
        for route in deployment.routes
    )
    dozing = on_devices(replace(deployment, routes=routes), 0)
    decision = decision_of(dozing)
    assert happens(dozing, decision) == step
    if step == "wait":
        assert decision.waits is not None
        assert decision.waits.kind is WaitsFor.DEVICE
