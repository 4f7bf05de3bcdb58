"""Starts that fail are tried again ever more slowly, and a deployment that was given up after a pause."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.handlers.dispatch import cycle
from domain.handlers.scaling import ScalingHandler
from domain.model.decision import Decision, RouteChanges, Waits, WaitsFor, too_short
from domain.model.deployment import StartFailures
from domain.model.states import RouteStatus, Verdict
from domain.planning.simulator import Fates, World, with_status
from domain.planning.wait_explanation import why
from domain.strategies.converge import hold_back, next_start_at
from tests.support.pictures.pictures import NOW, READY, V1, V2, deploying, happens, resting, route_id, scaling
from tests.support.pictures.simulation import all_started, applied, world_of


@pytest.mark.parametrize("n", [1, 3, 5])
@pytest.mark.parametrize("start_seconds", [1, 60])
def test_a_broken_command_writes_no_more_than_a_dozen_routes_in_its_30_minutes(n: int, start_seconds: float) -> None:
    world = world_of(resting("", n), starts_fail=True, start_seconds=start_seconds)
    world.run(seconds=30 * 60)
    assert n + 3 <= world.created <= 12
    assert world.deployment.status == READY
    assert world.deployment.degraded_reason is not None
    assert "30 minutes" in world.deployment.degraded_reason


def test_looking_more_often_tries_no_more_starts() -> None:
    world = world_of(resting("", 5), starts_fail=True, start_seconds=60)
    for _ in range(360):
        world.run(seconds=5)
        world.at += timedelta(seconds=5)
        world.due_at = world.at
    assert world.created <= 12


def test_one_start_that_succeeds_ends_the_back_off() -> None:
    failing = StartFailures(V2, in_a_row=6, last_at=NOW - timedelta(minutes=5))
    deployment = applied(cycle(resting("", 3, start_failures=failing), NOW), NOW)
    assert len(deployment.routes) == 1
    assert scaling(all_started(deployment, NOW)) == "create 2"


def test_failures_of_another_revision_hold_nothing_back() -> None:
    assert scaling(resting("", 3, start_failures=StartFailures(V1, 6, NOW))) == "create 3"


@pytest.mark.parametrize("seconds", [0, -1, -60, 1])
def test_a_start_that_is_held_back_is_never_due_at_once(seconds: int) -> None:
    """Its pause is over at this very moment, and another start is being tried."""
    failing = StartFailures(V2, in_a_row=1, last_at=NOW - timedelta(seconds=2 - seconds))
    decision = ScalingHandler().decide(resting("■◇", 3, start_failures=failing), NOW)
    assert decision.verdict is Verdict.SKIPPED
    assert decision.recheck_at == (NOW + timedelta(seconds=seconds) if seconds > 0 else None)


def test_a_step_that_goes_on_at_once_does_so_though_a_start_is_held_back() -> None:
    failing = StartFailures(V2, in_a_row=9, last_at=NOW)
    deployment = resting("■■□|", 3, start_failures=failing)
    decision = ScalingHandler().decide(deployment, NOW)
    assert (happens(deployment, decision), decision.recheck_at) == ("drain □", NOW)


def test_a_degraded_deployment_is_tried_again_after_a_pause_and_not_before() -> None:
    world = world_of(resting("", 1), starts_fail=True)
    world.run(seconds=30 * 60)
    created, retry_at = world.created, world.deployment.retry_at
    assert retry_at is not None
    assert retry_at >= world.at + timedelta(seconds=59)
    world.run(seconds=(retry_at - world.at).total_seconds() - 1)
    assert (world.created, world.deployment.status) == (created, READY)
    world.fates = Fates()
    world.run(seconds=30 * 60)
    assert world.deployment.status == READY
    assert world.deployment.degraded_reason is None
    assert [route.status for route in world.deployment.routes] == [RouteStatus.HEALTHY]


@pytest.mark.parametrize(
    ("in_a_row", "seconds"), [(1, 2), (2, 4), (3, 8), (9, 512), (10, 600), (11, 600), (10_000, 600)]
)
def test_each_failed_start_doubles_the_pause_up_to_ten_minutes(in_a_row: int, seconds: float) -> None:
    assert next_start_at(StartFailures(V2, in_a_row, NOW)) == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("picture", "failed_ago", "recheck_in", "created", "due_in", "said"),
    [
        ("■■|", 0, None, 0, 4, "; the next one is tried in 4 s"),
        ("■■|", 0, 3, 0, 3, "; the next one is tried in 4 s"),
        ("■■|", 0, 9, 0, 4, "; the next one is tried in 4 s"),
        ("■■|", 0, 0, 0, 0, "; the next one is tried in 4 s"),
        ("■■|◇", 9, 3, 0, 3, "; one is being tried"),
        ("■■|◇", 9, None, 0, None, "; one is being tried"),
        ("◇■|", 0, None, 0, 4, "; the next one is tried in 4 s"),
        ("◇■|", 4, None, 1, None, ", so only 1 is tried"),
        ("■■|■", 4, 3, 1, 3, ", so only 1 is tried"),
    ],
)
def test_a_start_that_is_held_back_leaves_the_rest_of_the_step_as_it_was(
    picture: str, failed_ago: float, recheck_in: float | None, created: int, due_in: float | None, said: str
) -> None:
    deployment = deploying(picture, start_failures=StartFailures(V2, 2, NOW - timedelta(seconds=failed_ago)))
    recheck_at = None if recheck_in is None else NOW + timedelta(seconds=recheck_in)
    others = RouteChanges.create(V1, 1, drain=(route_id(0),))
    decision = Decision.moved("creating 4", RouteChanges.create(V2, 3) + others, recheck_at)
    held = hold_back(decision, deployment, NOW)
    assert held.changes == others + RouteChanges.create(V2, created)
    assert held.recheck_at == (None if due_in is None else NOW + timedelta(seconds=due_in))
    assert held.reason == "creating 4; 2 starts failed in a row" + said


def test_a_step_that_only_starts_is_a_wait_while_it_is_held_back() -> None:
    deployment = deploying("■■|", start_failures=StartFailures(V2, 2, NOW))
    held = hold_back(Decision.moved("creating 1", RouteChanges.create(V2, 1), NOW), deployment, NOW)
    pause = too_short(timedelta(), timedelta(seconds=4), "after the last failure")
    words = "2 starts failed in a row"
    wait = Decision.wait(Waits(WaitsFor.TIME, words, blocked=(pause,)), NOW + timedelta(seconds=4))
    assert held == replace(wait, reason=f"waiting: {words}; the next one is tried in 4 s")
    assert why(deployment, NOW).sentence.count(" 4 s") == 2, "what it is held by, and when it ends"
    none = replace(deployment, start_failures=StartFailures(V2, 0, NOW))
    step = Decision.moved("creating 1", RouteChanges.create(V2, 1))
    assert hold_back(step, none, NOW) is hold_back(step, replace(none, start_failures=None), NOW) is step


def story(world: World) -> list[str]:
    """Each start and each change of what the deployment is called, with its second."""
    told, last = [], ""
    for look in world.looks:
        decision, at = look.decision, look.at
        second, after = round((at - NOW).total_seconds()), applied(decision, at)
        called = f"{after.status}, degraded" if after.degraded_reason else str(after.status)
        told += [f"{second} start"] * decision.changes.created + [f"{second} {called}"] * (called != last)
        last = called
    return told


def test_what_is_well_for_a_second_and_ends_again_and_again_is_tried_ever_more_slowly_and_called_degraded() -> None:
    world = world_of(resting("", 1), lives_seconds=1)
    world.run(seconds=220)
    assert story(world) == [
        *("0 start", "0 scaling", "1 ready", "2 scaling"),
        *("4 start", "5 ready", "6 scaling"),
        *("10 start", "11 ready", "12 scaling"),
        *("20 start", "21 ready, degraded", "22 scaling, degraded"),
        *("38 start", "39 ready, degraded", "40 scaling, degraded"),
        *("72 start", "73 ready, degraded", "74 scaling, degraded"),
        *("138 start", "139 ready, degraded", "140 scaling, degraded"),
    ]
    assert world.deployment.degraded_reason == (
        "replicas failed 5 times in a row soon after they had come up; the last one has not been well for 60 s yet"
    )
    world.run(seconds=24 * 3600)
    assert world.created < 24 * 6 + 10, "one in ten minutes"
    assert world.deployment.degraded_reason is not None


def test_once_it_is_well_for_a_minute_it_is_degraded_no_more_and_the_next_failure_is_the_first() -> None:
    world = world_of(resting("", 1), lives_seconds=1)
    world.run(seconds=200)
    world.fates, world.fate_of = Fates(), {}
    world.run(seconds=200)
    assert story(world)[-4:] == ["268 start", "269 ready, degraded", "329 scaling, degraded", "329 ready"]
    assert (world.deployment.status, world.deployment.degraded_reason) == (READY, None)
    (route,) = world.deployment.routes
    failed = with_status(world.deployment, [route.id], RouteStatus.FAILED, world.at)
    assert failed.start_failures == StartFailures(route.revision_id, 1, world.at)


def test_of_many_one_that_fails_again_and_again_makes_the_deployment_degraded() -> None:
    deployment = resting("■■■", 3)
    now = NOW
    for _ in range(3):
        dead = deployment.routes[-1].id
        deployment = with_status(deployment, [dead], RouteStatus.FAILED, now)
        now += timedelta(seconds=20)
        deployment = applied(cycle(deployment, now), now)
        deployment = applied(cycle(deployment, now), now)
        deployment = all_started(deployment, now)
        deployment = applied(cycle(deployment, now), now)
    assert deployment.status == READY
    assert deployment.degraded_reason is not None
    assert len(deployment.active_routes) == 3
