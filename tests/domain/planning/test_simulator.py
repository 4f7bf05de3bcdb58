"""The simulated world at its edges: what never rests, what nobody looks at, replicas that live for a while."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from domain.devices.room import DeviceRoom
from domain.handlers.dispatch import handler_of
from domain.model.policy import DeploymentPolicy, RolloutLimits
from domain.model.states import RouteStatus
from domain.planning import simulator as simulated
from domain.planning.plan_input import Subject, says_when_healthy
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import plan
from domain.planning.run import Stand, course
from domain.planning.simulator import Fate, Fates, LearnedFates, World
from tests.support.pictures.pictures import (
    DESTROYED,
    NOW,
    READY,
    V1,
    V2,
    blue_green,
    deploying,
    resting,
    rolling_back,
    rolling_update,
)
from tests.support.pictures.simulation import world_of

FIVE_WEEKS = 35 * 86400.0


def test_a_replica_that_lives_for_a_while_fails_then_and_is_replaced() -> None:
    world = world_of(resting("■■■", status=READY, status_for=0), lives_seconds=600)
    world.run(900)
    assert world.created == 3
    assert all(route.created_at >= NOW for route in world.deployment.routes)


def test_what_never_rests_is_an_error_that_says_what_it_did_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated, "MOST_LOOKS", 2)
    world = world_of(deploying("■■■|"))
    with pytest.raises(ValueError, match="web never rests: "):
        world.run(60)


def test_what_is_destroyed_is_looked_at_by_nobody() -> None:
    world = world_of(resting("", status=DESTROYED))
    world.run(60)
    assert world.looks == []
    with pytest.raises(ValueError, match="web is destroyed, and nobody looks at it"):
        handler_of(world.deployment)


def test_a_look_is_as_late_as_its_wake_or_its_alarm() -> None:
    learned = Timings(starts=(2.0,), wakes=(0.5,))
    run = course(deploying("■■■|", 3, spec={"min_ready_seconds": 5}), NOW, LearnedFates(timings=learned))
    assert run.begins[:2] == (0.5, 8.0), "a start of 2 s and 5 s in health, and the alarm comes half a second later"


def test_a_replica_of_which_nothing_was_learned_takes_a_second_to_start_and_one_to_stop() -> None:
    fate = LearnedFates().of_replica()
    assert (fate.start_seconds, fate.stop_seconds, LearnedFates().wake_seconds()) == (1, 1, 0)


def test_what_is_parked_is_beside_what_is_live() -> None:
    stand = Stand.of(resting("▫▫|■■◇~").routes)
    assert (stand.live, stand.stopping, stand.serving) == (3, 1, 2)


@pytest.mark.parametrize(("moment", "wakes"), [(0.9, (0.5, 3.0)), (0.0, (0.5, 1.0, 3.0))])
def test_a_past_of_two_or_three_measurements_is_drawn_from_as_a_whole(moment: float, wakes: tuple[float, ...]) -> None:
    draws = iter((moment, 0.0, 0.9))
    fates = LearnedFates(timings=Timings(wakes=wakes), draw=lambda: next(draws))
    assert [fates.wake_seconds(), fates.wake_seconds()] == [0.5, 3.0]


def start_seconds(starts: Sequence[float], moment: float, *, chosen: float = 0.0, replicas: int = 3) -> float:
    """Of a replica, in a run that is like this moment of the past; `chosen`: which of its stretch, from 0 to 1."""
    draws = iter((moment, chosen))
    fates = LearnedFates(timings=Timings(starts=tuple(starts)), draw=lambda: next(draws), replicas=replicas)
    return round(fates.of_replica().start_seconds, 3)


def counting(number: int) -> list[float]:
    return [float(second) for second in range(1, number + 1)]


@pytest.mark.parametrize(
    ("past", "moment", "chosen", "replicas", "seconds"),
    [
        # fewer than six stretches of three: as they were
        (17, 0, 0, 3, 1),
        (17, 0, 0.99, 3, 3),
        (17, 0.999, 0, 3, 15),
        (17, 0.5, 0, 3, 8),
        # six of them: times the growth from the two stretches before to the last two, 13 to 18
        (18, 0, 0, 3, 31),  # 7, and 15.5 / 3.5 times as long now
        (18, 0, 0.99, 3, 39.857),  # 9
        (18, 0.999, 0, 3, 19.84),  # 16, and 15.5 / 12.5 times
        # a stretch has as many as the rollout has replicas, but at least six of them must be there
        (36, 0, 0.99, 6, 84.462),  # the last of 13 to 18, and 30.5 / 6.5 times
        (36, 0, 0.99, 20, 84.462),
        (36, 0, 0.99, 5, 85.909),  # the last of 11 to 15, and 31.5 / 5.5 times
        (36, 0, 0.99, 1, 86.143),  # the last of 7 to 9, and 33.5 / 3.5 times
    ],
)
def test_a_run_is_like_one_stretch_of_the_past_and_as_much_slower_as_it_has_become_since(
    past: int, moment: float, chosen: float, replicas: int, seconds: float
) -> None:
    assert start_seconds(counting(past), moment, chosen=chosen, replicas=replicas) == seconds


def test_times_that_were_nothing_have_not_grown() -> None:
    assert start_seconds([0.0] * 12 + [6.0] * 6, 0.3) == 0
    assert start_seconds([0.0] * 6 + [2.0] * 12, 0) == 2


def test_a_host_of_which_nothing_was_learned_takes_no_time_to_be_prepared() -> None:
    assert (LearnedFates().prepare_seconds(), Fates().prepare_seconds(), Fates().wake_seconds()) == (0, 0, 0)
    assert (Fates().alarm_seconds(), Fate()) == (0, Fate(1.0, start_fails=False, stop_seconds=None, lives_seconds=None))
    taught = LearnedFates(timings=Timings(preparations=(60.0,)))
    assert (taught.prepare_seconds(), taught.wake_seconds()) == (60, 0)


def test_a_start_that_never_ends_never_comes_to_rest() -> None:
    stuck = rolling_back("■■◇|")
    assert course(stuck, NOW, Fates(Fate(start_seconds=FIVE_WEEKS))).seconds is None
    foreseen = plan(Subject(stuck), NOW, Timings(starts=(FIVE_WEEKS,)), lambda: 0.5)
    assert foreseen.seconds is None
    assert any(warning.startswith("it does not come to rest: ") for warning in foreseen.warnings)


def test_the_longest_timeout_is_waited_for_by_a_plan() -> None:
    patient = deploying("■■|◇", limits=RolloutLimits(timeout_seconds=30 * 86400))
    fates = LearnedFates(timings=Timings(starts=(FIVE_WEEKS,)), draw=lambda: 0.5)
    why = course(patient, NOW, fates).back_reason
    assert why is not None
    assert why.startswith("the timeout of 2.592e+06 s has passed")


def test_the_moves_of_a_course_are_what_each_wave_creates_drains_promotes_and_parks() -> None:
    delayed = blue_green(auto_promote=True, scale_down_delay_seconds=60)
    assert course(deploying("■■|", 2, policy=delayed), NOW, Fates()).moves == ((2, 0, 0, 0), (0, 0, 2, 2))
    assert course(deploying("■■■|"), NOW, Fates()).moves == ((1, 1, 0, 0),) * 3 + ((0, 0, 0, 0),)


def test_those_that_are_stopping_when_it_begins_have_a_fate_too() -> None:
    world = World(resting("■■■~", status=READY, status_for=0), NOW, Fates(Fate(stop_seconds=5)))
    world.run(4)
    assert [route.status for route in world.deployment.routes].count(RouteStatus.TERMINATING) == 1
    world.at = NOW
    world.run(6)
    assert len(world.deployment.routes) == 3
    assert world.at - NOW <= timedelta(seconds=6)


@pytest.mark.parametrize(
    ("spec", "checked"),
    [
        ({}, False),
        ({"health_check": None}, False),
        ({"health_check": {"path": "/"}}, True),
        ({"runtime": "external"}, True),
    ],
)
def test_who_says_when_a_replica_is_healthy(spec: dict[str, object], *, checked: bool) -> None:
    assert says_when_healthy(spec) is checked


def on_devices(drawn: str, free: int, sleepers: tuple[UUID, ...] = (), policy: DeploymentPolicy | None = None) -> World:
    """Three are wanted; each start and each stop takes a second, and so does nothing else."""
    room = DeviceRoom({V1: free, V2: free}, sleepers=sleepers)
    return World(replace(deploying(drawn, policy=policy), devices=room), NOW, Fates(Fate(stop_seconds=1)))


def most_holding(world: World) -> int:
    return max(sum(not route.has_lent for route in look.after.routes) for look in world.looks)


@pytest.mark.parametrize(("free", "most"), [(0, 3), (1, 4), (5, 4)])
def test_on_devices_no_more_replicas_hold_some_than_there_are(free: int, most: int) -> None:
    world = on_devices("■■■|", free)
    world.run(60)
    assert most_holding(world) == most
    assert [route.revision_id for route in world.deployment.routes] == [V2, V2, V2]


def test_what_is_parked_and_can_sleep_lends_its_devices_to_those_that_come() -> None:
    world = on_devices("■■■|", 0, (V1,), rolling_update(1, 1, sleep_seconds=600))
    world.run(60)
    left = [(route.revision_id, route.has_lent) for route in world.deployment.routes]
    assert sorted(left) == [(V1, True)] * 3 + [(V2, False)] * 3
    assert most_holding(world) == 3


def test_asleep_falls_what_is_parked_and_well_of_a_revision_that_can_sleep() -> None:
    world = on_devices("▫■▲|▫", 4, (V1,))
    well, serving, sick, other = world.deployment.routes
    parked = replace(sick, parked_until=well.parked_until)
    world.deployment = replace(world.deployment, routes=(well, serving, parked, other))
    world.run(0)
    seen = world.looks[0].decision.deployment.routes
    assert [route.has_lent for route in seen] == [True, False, False, False]
    assert seen[0].status is RouteStatus.PROVISIONING


@pytest.mark.parametrize(("places", "may_wake"), [(0, False), (1, True)])
def test_a_sleeper_may_wake_where_a_device_is_free(places: int, *, may_wake: bool) -> None:
    """Three replicas hold one each, and the fourth sleeps; `places`: those that are free beside them."""
    world = on_devices("▫■■■|", places, (V1,))
    sleeper, *others = world.deployment.routes
    world.deployment = replace(world.deployment, routes=(replace(sleeper, has_lent=True), *others))
    world.places = {V1: places + 3, V2: places + 3}
    world.run(0)
    room = world.looks[0].decision.deployment.devices
    assert room is not None
    assert (room.lent, room.free) == ({sleeper.id: may_wake}, {V1: places, V2: places})
