"""Green or blue fails, and the way back to blue."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.effects import after
from domain.handlers.deploying import DeployingRollingBackHandler
from domain.handlers.dispatch import cycle
from domain.model.deployment import StartFailures
from domain.model.policy import RolloutLimits
from domain.model.states import RouteStatus, Verdict
from domain.planning.simulator import with_status
from tests.support.pictures.blue_green import AUTO, IN_GRACE, MANUAL, PAST_GRACE, of_v3, step
from tests.support.pictures.pictures import (
    NOW,
    READY,
    ROLLING_BACK,
    V1,
    V2,
    deploying,
    drawn_changes,
    happens,
    rolling_back,
    route_id,
)
from tests.support.pictures.simulation import all_started, applied, world_of


def test_the_way_back_is_to_blue_at_its_own_size() -> None:
    world = world_of(rolling_back("■■■|□", 3, policy=AUTO))
    world.run(seconds=60)
    assert (world.deployment.status, world.deployment.desired_replicas, world.created) == (READY, 3, 0)
    assert [route.id for route in world.deployment.routes] == [route_id(0), route_id(1), route_id(2)]


def test_every_green_failed_goes_back_at_once() -> None:
    deployment = deploying("■■■|◌◌◌", policy=AUTO)
    for number in (3, 4):
        deployment = with_status(deployment, [route_id(number)], RouteStatus.FAILED, NOW)
        assert step(deployment) == "wait"
    decision = cycle(with_status(deployment, [route_id(5)], RouteStatus.FAILED, NOW), NOW)
    assert (decision.verdict, decision.to) == (Verdict.GIVE_UP, ROLLING_BACK)
    assert cycle(applied(decision, NOW), NOW).to == READY


def test_every_green_failed_goes_back_at_once_whatever_the_failure_budget_allows() -> None:
    assert step(deploying("■|", 1, policy=AUTO, rollout={"failed_routes": 1})) == "give up"
    assert step(deploying("■■|", 2, policy=AUTO, rollout={"failed_routes": 1})) == "create 2"


def test_one_green_that_lives_is_a_reason_to_go_on() -> None:
    patient = RolloutLimits(failure_budget=10)
    assert step(deploying("■■■|", policy=AUTO, limits=patient, rollout={"failed_routes": 3})) == "give up"
    assert step(deploying("■■■|□", policy=AUTO, limits=patient, rollout={"failed_routes": 3})) == "create 2"


def test_a_partial_failure_is_repaired() -> None:
    deployment = deploying("■■■|□□◌", policy=AUTO)
    deployment = with_status(deployment, [route_id(5)], RouteStatus.FAILED, NOW)
    world = world_of(deployment)
    world.run(seconds=60)
    assert (world.deployment.status, world.deployment.current_revision_id) == (READY, V2)
    assert world.created == 1


def test_a_blue_that_cannot_start_any_more_does_not_keep_green_from_coming() -> None:
    failing = StartFailures(V1, in_a_row=9, last_at=NOW)
    deployment = deploying("■|", 3, policy=AUTO, start_failures=failing)
    assert step(deployment) == "create 3"
    assert step(replace(deployment, routes=all_started(deploying("|◌◌◌", policy=AUTO), NOW).routes)).startswith(
        "completed"
    )


def test_what_a_superseded_rollout_left_out_of_traffic_is_drained_and_what_serves_goes_with_blue() -> None:
    left = of_v3(deploying("■■■□□|", policy=AUTO), 3, 4)
    assert step(left) == "create 1, drain □□"
    serving = of_v3(deploying("■■■|□□□", policy=AUTO), 2)
    assert step(serving) == "completed: promote □□□, drain ■■■"
    assert step(of_v3(deploying("■■■|◌◌◌", policy=AUTO), 2)) == "wait"


def test_an_abort_in_the_middle_drains_green_at_once_and_touches_no_blue() -> None:
    for green in ("◌◌◌", "□□◌", "□□□", "▲◌□"):
        deployment = rolling_back(f"■■■|{green}", policy=AUTO)
        decision = DeployingRollingBackHandler().decide(deployment, NOW)
        assert set(decision.changes.drain_route_ids) == {route_id(3), route_id(4), route_id(5)}
        assert not decision.changes.created
    world = world_of(rolling_back("■■■|□□◌", policy=MANUAL))
    world.run(seconds=60)
    assert (world.deployment.status, world.created) == (READY, 0)
    assert [route.id for route in world.deployment.routes] == [route_id(0), route_id(1), route_id(2)]


def test_trap_a_blue_green_rollback_never_stops_the_side_that_serves() -> None:
    for picture, expected in (
        ("■■■|□□□", "drain □□□"),
        ("■■|□□□", "create 1, drain □□□"),
        ("|■■■", "create 3"),
        ("◇◇◇|■■■", "wait"),
        ("■■■|■■■", "drain ■■■"),
    ):
        deployment = rolling_back(picture, policy=AUTO)
        assert happens(deployment, DeployingRollingBackHandler().decide(deployment, NOW)) == expected


@pytest.mark.parametrize("status_for", [IN_GRACE, PAST_GRACE])
def test_a_sick_green_too_many_goes_first_and_at_once_even_while_it_waits_for_a_person(status_for: float) -> None:
    deployment = deploying("■|□▲", 1, policy=MANUAL, status_for=status_for)
    assert step(deployment) == "drain ▲"
    assert cycle(deployment, NOW).clock_stopped


def test_a_sick_green_is_looked_at_when_its_grace_ends_even_while_blue_waits_for_a_person() -> None:
    deployment = deploying("■|▲", 1, policy=MANUAL, status_for=IN_GRACE, paused_at=NOW)
    assert cycle(deployment, NOW).due_at == NOW + timedelta(seconds=25)


@pytest.mark.parametrize(
    ("picture", "n", "looks"),
    [
        # scaled down while green waits: greens too many leave, and blue is kept as any other
        ("■■■■■■|□□□□□□", 2, ["drain □□□□■■■■", "wait"]),
        ("|□□□□□□", 2, ["drain □□□□", "create 2"]),
        ("■|□□□□", 2, ["drain □□", "create 1"]),
        ("■■|□□◌◌", 2, ["drain ◇◇", "wait"]),
        ("■■■|□□□", 0, ["drain □□□■■■", "wait"]),
    ],
)
@pytest.mark.parametrize("changed", [{}, {"paused_at": NOW}, {"status": ROLLING_BACK, "paused_at": NOW}])
def test_greens_too_many_take_no_place_of_blue(picture: str, n: int, looks: list[str], changed: dict[str, Any]) -> None:
    deployment, seen = deploying(picture, n, policy=MANUAL, **changed), []
    for _ in looks:
        decision = cycle(deployment, NOW)
        seen.append(drawn_changes(deployment, decision.changes) or "wait")
        deployment = after(decision, NOW)
    assert seen == looks


def test_without_a_current_revision_there_is_no_blue_to_keep() -> None:
    with pytest.raises(ValueError, match="web is deploying without a current revision"):
        step(deploying("■■■|□", policy=AUTO, current_revision_id=None))
