"""Scaling, and activation without a policy: converge at rest, within n + 1 and n."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.handlers.dispatch import cycle
from domain.handlers.scaling import ScalingHandler
from domain.model.states import RouteStatus
from domain.planning.simulator import with_status
from tests.support.pictures.pictures import NOW, READY, V2, resting, route_id, scaling
from tests.support.pictures.simulation import all_started, applied, until_it_waits, world_of

IN_GRACE = 5.0


@pytest.mark.parametrize(
    ("picture", "n", "expected"),
    [
        # up, down, to none
        ("", 3, "create 3"),
        ("■■■", 3, "completed"),
        ("■■■", 5, "create 2"),
        ("■■■", 2, "drain ■"),
        ("■■■", 0, "drain ■■■"),
        ("", 0, "completed"),
        ("■■◇", 3, "wait"),
        ("■■◇", 5, "create 2"),
        ("■■■◇", 3, "drain ◇"),
        ("■■◇◇", 1, "drain ◇◇■"),
        ("■■~", 3, "create 1"),
        ("■■■~", 3, "completed"),
        # foreign ones, as far as own ready ones stand in for them
        ("■■■|", 3, "create 1"),
        ("■■■|◇", 3, "wait"),
        ("■■■|■", 3, "drain ■"),
        ("■■|■", 3, "create 1"),
        ("■|■■■", 3, "drain ■"),
        ("■■■|■■■", 3, "drain ■■■"),
        ("■■■■|", 3, "drain ■"),
        ("▲■■|■", 3, "drain ▲"),
        ("■▲■|■", 3, "drain ▲"),
        ("■■■|", 0, "drain ■■■"),
        ("■|", 1, "create 1"),
        ("■■■■■|", 2, "drain ■■■"),
        # foreign ones out of traffic at once
        ("□□□|■■■", 3, "drain □□□"),
        ("■□|", 3, "create 2, drain □"),
        # own ones out of traffic come in before foreign ones go
        ("■■■|□□□", 3, "promote □□□"),
        ("□■■", 3, "promote □"),
        ("□■■■", 3, "drain □"),
        # sick ones are replaced; the replacement is ready before the sick one goes
        ("■■▲", 3, "create 1"),
        ("■■▲◇", 3, "wait"),
        ("■■■▲", 3, "drain ▲"),
        ("■▲▲", 3, "create 1"),
        ("▲▲▲◇", 3, "wait"),
        ("■▲▲▲", 3, "drain ▲"),
        ("▲", 1, "create 1"),
        ("▲■", 1, "drain ▲"),
        ("▲▲▲■■", 2, "drain ▲▲▲"),
        ("▲◇■■", 2, "drain ▲◇"),
    ],
)
def test_scaling(picture: str, n: int, expected: str) -> None:
    assert scaling(resting(picture, n)) == expected


@pytest.mark.parametrize(
    ("picture", "n", "counting", "not_counting"),
    [
        # the sick one goes first, and what it holds is there for the next one
        ("■■▲", 3, "drain ▲", "drain ▲"),
        ("■■~", 3, "wait", "create 1"),
        ("■■", 3, "create 1", "create 1"),
        ("■■◇", 3, "wait", "wait"),
        ("■▲▲", 3, "drain ▲", "drain ▲"),
        ("■▲◇", 3, "wait", "wait"),
        ("▲", 1, "drain ▲", "drain ▲"),
        ("■■△", 3, "drain △", "drain △"),
        ("■■■", 4, "create 1", "create 1"),
        ("■■■", 2, "drain ■", "drain ■"),
        ("■■■▲", 3, "drain ▲", "drain ▲"),
        # what an activation without a policy left stays until there is a replacement
        ("■■■|", 3, "create 1", "create 1"),
        ("■■|■", 3, "create 1", "create 1"),
        ("■■■|■", 3, "drain ■", "drain ■"),
    ],
)
def test_without_room_for_one_more_the_sick_one_goes_first(
    picture: str, n: int, counting: str, not_counting: str
) -> None:
    roomless = resting(picture, n, may_surge=False)
    assert scaling(roomless) == not_counting
    assert scaling(replace(roomless, count_stopping=True)) == counting


@pytest.mark.parametrize(
    ("picture", "n", "expected"),
    [("■■▲", 3, "wait"), ("■■△", 3, "wait"), ("■■■▲", 3, "drain ▲"), ("■■▲", 2, "drain ▲"), ("■▲", 3, "create 1")],
)
def test_a_sick_replica_has_a_grace_before_it_is_replaced(picture: str, n: int, expected: str) -> None:
    assert scaling(resting(picture, n, status_for=IN_GRACE)) == expected


@pytest.mark.parametrize(
    ("picture", "n", "not_counted", "counted"),
    [
        ("■■~", 3, "create 1", "create 1"),
        ("■■~~", 3, "create 1", "wait"),
        ("~~~~|", 3, "create 3", "wait"),
        ("■■~▲", 3, "create 1", "wait"),
        ("■■~▲▲", 3, "drain ▲", "drain ▲"),
        ("■■■~", 3, "completed", "completed"),
        ("■■■~|", 3, "create 1", "wait"),
        ("■■■~~|■", 3, "drain ■", "drain ■"),
    ],
)
def test_replicas_that_are_stopping_count_when_the_deployments_policy_says_so(
    picture: str, n: int, not_counted: str, counted: str
) -> None:
    assert scaling(resting(picture, n)) == not_counted
    assert scaling(resting(picture, n, count_stopping=True)) == counted


def test_a_wait_for_a_stopping_replica_says_so_with_its_inequality() -> None:
    reason = ScalingHandler().decide(resting("■■~~", count_stopping=True), NOW).reason
    assert reason.endswith("2 live + 2 stopping of at most 4")


def test_a_change_of_revision_with_slow_stops_stays_within_n_plus_1() -> None:
    world = world_of(resting("■■■|", count_stopping=True), stop_seconds=60)
    world.run(seconds=600)
    assert (world.deployment.status, world.created) == (READY, 3)
    assert max(len(look.decision.deployment.routes) for look in world.looks) == 4


def test_what_starts_is_too_many_only_where_it_stands_in_for_no_sick_one() -> None:
    assert scaling(resting("■■◇◇")) == "drain ◇"
    assert scaling(resting("■▲◇◇", status_for=IN_GRACE)) == "wait"


def test_a_wait_for_a_sick_replica_ends_with_its_grace() -> None:
    decision = ScalingHandler().decide(resting("■■▲", status_for=IN_GRACE), NOW)
    assert decision.recheck_at == NOW + timedelta(seconds=25)


def test_sick_replicas_are_replaced_one_at_a_time_within_n_plus_1() -> None:
    deployment, seen = resting("▲▲▲"), []
    for second in range(20):
        now = NOW + timedelta(seconds=second)
        deployment = until_it_waits(deployment, now)
        if deployment.status == READY:
            break
        statuses = [route.status for route in deployment.routes]
        assert statuses.count(RouteStatus.PROVISIONING) == 1
        assert len(statuses) <= 4
        seen.append(statuses.count(RouteStatus.HEALTHY))
        deployment = all_started(deployment, now)
    assert seen == [0, 1, 2]
    assert [route.status for route in deployment.routes] == [RouteStatus.HEALTHY] * 3


def test_of_sick_ones_that_are_in_the_way_of_their_replacement_one_goes_at_a_time() -> None:
    assert scaling(resting("■■|▲▲")) == "drain ▲"


def test_a_sick_replica_that_comes_back_makes_its_replacement_superfluous() -> None:
    deployment = applied(cycle(resting("■■▲"), NOW), NOW)
    deployment = with_status(deployment, [route_id(2)], RouteStatus.HEALTHY, NOW)
    assert scaling(deployment) == "drain ◇"


def test_a_sick_own_replica_does_not_use_up_the_room_that_the_change_of_revision_needs() -> None:
    deployment = resting("■■■|▲")
    assert scaling(deployment) == "drain ▲"
    assert scaling(resting("■■■|")) == "create 1"


def test_trap_scaling_does_not_count_routes_whatever_their_revision_or_traffic() -> None:
    assert scaling(resting("■■■|", 3)) == "create 1"
    assert scaling(resting("□□□", 3)) == "promote □□□"


@pytest.mark.parametrize("n", [0, 1, 3, 5])
@pytest.mark.parametrize("picture", ["", "■■■", "■■■|", "■■■|■", "□□□|■■■", "▲▲▲", "▲▲▲|", "■■■|▲", "◇◇|◇", "■■■|□□□"])
def test_scaling_ends_without_ever_needing_the_tick(picture: str, n: int) -> None:
    world = world_of(resting(picture, n), start_seconds=2)
    world.run(seconds=300)
    assert world.deployment.status == READY
    assert [(r.revision_id, r.status) for r in world.deployment.routes] == [(V2, RouteStatus.HEALTHY)] * n
