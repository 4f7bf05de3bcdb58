"""Sleepers that have lent their devices: who is woken in place of a new replica, and who waits for whom."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import islice

import pytest

from domain.cycle.effects import routes_after
from domain.cycle.evaluator import EVALUATOR, contained
from domain.devices.room import DeviceRoom
from domain.handlers.scaling import ScalingHandler
from domain.model.decision import Decision, WaitsFor
from domain.model.deployment import Deployment, Route
from domain.model.picture import symbol
from domain.model.states import Lifecycle, RouteStatus, TrafficStatus, Verdict
from domain.strategies.builtin import STRATEGIES, parse_policy
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
    rolling_update,
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


def test_while_it_is_paused_no_clock_runs_though_a_sick_parked_one_is_in_the_way() -> None:
    paused = deploying("▲◌|■", 2, *IN_PLACE, paused_at=NOW, rollout={"steps": 1})
    sick, *others = on_devices(paused, 0, [1]).routes
    sick = replace(sick, parked_until=NOW + timedelta(minutes=10), traffic=TrafficStatus.INACTIVE)
    decision = decision_of(on_devices(replace(paused, routes=(sick, *others)), 0, [1]))
    assert (decision.changes.drain_route_ids, decision.clock_stopped) == ((sick.id,), True)


SLEEPY = rolling_update(1, 1, sleep_seconds=600)


def run_in_place(deployment: Deployment, devices: int) -> Iterator[str]:
    """The steps to rest, and the pictures before them; what may happen of itself happens at once, one after another."""
    for _ in range(60):
        holding = sum(not route.has_lent for route in deployment.routes)
        assert holding <= devices, "a device has one owner"
        asleep = [number for number, route in enumerate(deployment.routes) if route.has_lent]
        seen = on_devices(deployment, devices - holding, asleep, asleep if devices > holding else [])
        decision = decision_of(seen)
        yield f"{drawn(seen)}: {happens(seen, decision)}"
        if decision.verdict is Verdict.SUCCESS:
            return
        deployment = replace(seen, routes=routes_after(seen.routes, decision.changes, NOW))
        deployment = (
            replace(deployment, routes=tuple(one_later(deployment.routes))) if not decision.changes else deployment
        )
    raise AssertionError("it never ends")


def one_later(routes: Iterable[Route]) -> Iterator[Route]:
    """A parked one sleeps, or one that starts is healthy, or one that stops is gone."""
    changed = False
    for route in routes:
        if changed or route.has_lent:
            yield route
        elif route.parked_until and route.status is RouteStatus.HEALTHY:
            yield replace(route, status=RouteStatus.PROVISIONING, has_lent=True)
            changed = True
        elif route.status is RouteStatus.PROVISIONING:
            yield replace(route, status=RouteStatus.HEALTHY, status_changed_at=NOW - timedelta(hours=1))
            changed = True
        elif route.status is RouteStatus.TERMINATING:
            changed = True
        else:
            yield route


def drawn(deployment: Deployment) -> str:
    sides = ["", ""]
    for route in deployment.routes:
        sign = "z" if route.has_lent else "~" if not route.is_active else symbol(route.status, route.traffic)
        sides[route.revision_id == V2] += sign
    return "|".join(sides)


def test_a_rollout_in_place_puts_the_old_ones_to_sleep_under_the_new_ones() -> None:
    steps = list(run_in_place(deploying("■■|", 2, policy=SLEEPY), 2))
    assert [step for step in steps if not step.endswith("wait")] == [
        "■■|: park ■",
        "z■|: create 1",
        "z■|■: park ■",
        "zz|■: create 1",
        "zz|■■: completed",
    ]


def test_without_time_to_sleep_or_where_they_cannot_sleep_they_stop() -> None:
    assert next(run_in_place(deploying("■■|", 2, *IN_PLACE), 2)) == "■■|: drain ■"
    cannot = on_devices(deploying("■■|", 2, policy=SLEEPY), 0)
    assert cannot.devices is not None
    assert does(replace(cannot, devices=replace(cannot.devices, sleepers=()))) == "drain ■"
    assert does(on_devices(deploying("▣■|■", 2, policy=SLEEPY), 1)) == "drain ▣, park ■"


def test_an_undo_in_place_puts_the_new_ones_to_sleep_and_wakes_the_old_ones_on_their_devices() -> None:
    policy = STRATEGIES["rolling_update"].undoing(SLEEPY)
    undo = deploying("■■|◌◌", 2, policy=policy)
    asleep = tuple(replace(route, has_lent=route.revision_id == V2) for route in undo.routes)
    steps = list(run_in_place(replace(undo, routes=asleep), 2))
    assert [step for step in steps if not step.endswith("wait")] == [
        "■■|zz: park ■",
        "z■|zz: wake ◇",
        "z■|■z: park ■",
        "zz|■z: wake ◇",
        "zz|■■: completed",
    ]


def test_a_single_one_on_a_single_device_sleeps_and_is_back_without_a_start() -> None:
    rolled = list(run_in_place(deploying("■|", 1, policy=SLEEPY), 1))
    assert [step for step in rolled if not step.endswith("wait")] == ["■|: park ■", "z|: create 1", "z|■: completed"]


@pytest.mark.parametrize(("picture", "asleep"), [("◌■|", 1), ("◌■|◇", 1), ("◌■|■", 1), ("◌◌|■", 2), ("◌◌|■■", 2)])
def test_an_abort_within_it_wakes_who_sleeps_and_starts_nobody(picture: str, asleep: int) -> None:
    back = rolling_back(picture, 2, policy=SLEEPY)
    routes = tuple(replace(route, has_lent=number < asleep) for number, route in enumerate(back.routes))
    steps = list(run_in_place(replace(back, routes=routes), 2))
    assert steps[-1] == "■■|: completed"
    assert sum("wake" in step for step in steps) == asleep
    assert not any("create" in step for step in steps)


def test_a_canary_in_place_wakes_its_old_side_when_it_is_aborted() -> None:
    policy = parse_policy({"strategy": "canary", "spec": {"max_unavailable": 1, "sleep_seconds": 600}})
    begun = list(islice(run_in_place(deploying("■■|", 2, policy=policy), 2), 8))
    assert "z■|: create 1" in begun, begun
    back = rolling_back("◌■|■", 2, policy=policy)
    routes = tuple(replace(route, has_lent=number == 0) for number, route in enumerate(back.routes))
    assert [step for step in run_in_place(replace(back, routes=routes), 2) if not step.endswith("wait")] == [
        "z■|■: drain ■",
        "z■|: wake ◇",
        "■■|: completed",
    ]


def test_the_last_one_serves_until_the_device_of_one_that_falls_asleep_is_free() -> None:
    """Two devices, and one replica is wanted: it was two when the rollout began."""
    assert does(on_devices(deploying("▫■|", 1, policy=SLEEPY), 0)) == "wait"
    assert does(on_devices(deploying("◌■|", 1, policy=SLEEPY), 1, [0], [0])) == "create 1"
