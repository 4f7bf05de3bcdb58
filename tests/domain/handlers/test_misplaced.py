"""Replicas on a drained host: each is replaced elsewhere, within the budgets, and serves until then.

▣ healthy, on a drained host   ◈ starting there
"""

from dataclasses import replace

import pytest

from domain.handlers.check_replica import CheckReplicaHandler
from domain.handlers.dispatch import handler_of
from domain.model.deployment import Deployment
from domain.model.states import Verdict
from tests.support.pictures.pictures import (
    NOW,
    READY,
    RECREATE,
    blue_green,
    deploying,
    happens,
    resting,
    rolling_back,
    scaling,
)
from tests.support.pictures.policies import canary
from tests.support.pictures.simulation import world_of

HALF = {"stage": 1, "weight": 5000, "weight_known_at": NOW}


def decided(deployment: Deployment) -> str:
    return happens(deployment, handler_of(deployment).decide(deployment, NOW))


@pytest.mark.parametrize(
    ("picture", "n", "expected"),
    [
        ("▣▣▣", 3, "create 1"),
        ("▣▣▣◇", 3, "wait"),
        ("▣▣▣■", 3, "drain ▣"),
        ("▣▣■", 3, "create 1"),
        ("▣▣▣▲", 3, "drain ▲"),
        ("▣", 1, "create 1"),
        ("■▣", 1, "drain ▣"),
        # one that starts there has its replacement too, and goes when that is ready
        ("■■◈", 3, "create 1"),
        ("■■◈◇", 3, "wait"),
        ("■■◈■", 3, "drain ◈"),
        # another size
        ("▣", 3, "create 3"),
        ("▣■■", 2, "drain ▣"),
        ("▣▣▣", 0, "drain ▣▣▣"),
        ("", 0, "completed"),
        # another revision
        ("▣▣▣|", 3, "create 1"),
        ("■▣■|■", 3, "drain ▣"),
        # one out of traffic comes in first, as nobody else may serve
        ("□▣", 2, "create 1, promote □"),
    ],
)
def test_at_rest_one_more_is_made_elsewhere_and_then_it_goes(picture: str, n: int, expected: str) -> None:
    assert scaling(resting(picture, n)) == expected


@pytest.mark.parametrize(
    ("picture", "n", "counting", "not_counting"),
    [
        ("▣▣▣", 3, "drain ▣", "drain ▣"),
        ("▣▣~", 3, "wait", "create 1"),
        ("▣▣", 3, "create 1", "create 1"),
        ("▣▣◇", 3, "wait", "wait"),
        ("▣▣▲", 3, "drain ▲", "drain ▲"),
        ("▣▣■", 3, "drain ▣", "drain ▣"),
        ("▣", 1, "drain ▣", "drain ▣"),
        ("▣▣|▣", 3, "create 1", "create 1"),
    ],
)
def test_without_room_for_one_more_one_goes_first(picture: str, n: int, counting: str, not_counting: str) -> None:
    roomless = resting(picture, n, may_surge=False)
    assert scaling(roomless) == not_counting
    assert scaling(replace(roomless, count_stopping=True)) == counting


def test_a_deployment_that_is_ready_sets_out_for_it() -> None:
    decision = CheckReplicaHandler().decide(resting("■▣■", status=READY), NOW)
    assert (decision.verdict, decision.reason) == (Verdict.SUCCESS, "1 replica on drained hosts")
    assert CheckReplicaHandler().decide(resting("■■■", status=READY), NOW).verdict is Verdict.SKIPPED


@pytest.mark.parametrize(("may_surge", "least", "most"), [(True, 3, 4), (False, 2, 3)])
def test_a_host_is_emptied_one_by_one_within_the_budget(*, may_surge: bool, least: int, most: int) -> None:
    world = world_of(resting("▣▣▣", status=READY, may_surge=may_surge), start_seconds=5, stop_seconds=2)
    world.run(seconds=300)
    assert (world.deployment.status, world.created) == (READY, 3)
    assert not any(route.is_misplaced for route in world.deployment.routes)
    seen = [look.decision.deployment for look in world.looks]
    assert min(sum(route.is_serving for route in each.routes) for each in seen) == least
    assert max(len(each.active_routes) for each in seen) == most


def test_while_no_replacement_comes_up_it_serves_on() -> None:
    world = world_of(resting("▣▣▣", status=READY), starts_fail=True)
    world.run(seconds=3600)
    assert sum(route.is_serving for route in world.deployment.routes) == 3


def test_what_is_parked_there_goes_at_once() -> None:
    parked = resting("▫|■■■")
    there = replace(parked, routes=(replace(parked.routes[0], is_misplaced=True), *parked.routes[1:]))
    assert (scaling(parked), scaling(there)) == ("completed", "drain □")


@pytest.mark.parametrize(
    ("deployment", "expected"),
    [
        # the rollout replaces old ones anyway, those there before older ones; new ones go when it has ended
        (deploying("■▣■|■", u=0), "drain ▣"),
        (deploying("■■▣|◇"), "wait"),
        (deploying("|■■▣"), "completed"),
        (deploying("|■■▣", policy=RECREATE), "completed"),
        (rolling_back("■▣■|"), "create 1, drain ▣"),
        (rolling_back("▣■|■", 2, u=0), "drain ■"),  # it may have had its weight taken, and answer nothing
        (rolling_back("▣■|▲", 2, u=0), "drain ▲"),
        # what is parked there would go at once
        (
            deploying("▣■|□□", 2, policy=blue_green(auto_promote=True, scale_down_delay_seconds=60)),
            "completed: promote □□, drain ▣, park ■",
        ),
        # what waits for a person leaves no room in the ceiling, or it does
        (deploying("▣▣|□□", 2, policy=blue_green()), "wait"),
        (deploying("▣■■|■", policy=canary(), rollout={"stage": 1, "weight": 500, "weight_known_at": NOW}), "wait"),
        (
            deploying("▣■■|■", policy=canary(max_surge=2), rollout={"stage": 1, "weight": 500, "weight_known_at": NOW}),
            "create 1",
        ),
        (
            deploying(
                "■■■|▣■", policy=canary(max_surge=2), rollout={"stage": 1, "weight": 500, "weight_known_at": NOW}
            ),
            "drain ▣",
        ),
        (deploying("▣■■■|■■", 4, policy=canary(steps=["50%"], max_surge=2), rollout=HALF), "wait"),
        (deploying("▣■■■|■■", 4, policy=canary(steps=["50%"], max_surge=3), rollout=HALF), "create 1"),
    ],
)
def test_in_a_rollout(deployment: Deployment, expected: str) -> None:
    assert decided(deployment) == expected


@pytest.mark.parametrize(
    ("picture", "s", "u", "expected"),
    [
        ("▣■■|", 1, 0, "create 1"),
        ("▣■■■|", 1, 0, "drain ▣"),
        ("▣■|■", 1, 0, "create 1"),
        ("▣■◇|■", 1, 0, "wait"),
        ("▣■■|■", 1, 0, "drain ▣"),
        ("▣▣▣|■", 1, 0, "drain ▣"),
        ("■■|▣", 1, 0, "create 1"),
        ("■■■|▣", 1, 0, "drain ▣"),
        ("▣■|■", 0, 1, "drain ▣"),
        ("▣■|", 0, 1, "create 1"),
        ("▣■|▲", 0, 1, "drain ▲"),
        ("|■■▣", 1, 0, "create 1"),
        ("▣■■|", 1, 1, "create 1"),
        ("▣■■■|", 1, 1, "drain ▣"),
        ("|■■▣", 1, 1, "create 1"),
        ("▣▣■|", 0, 2, "drain ▣"),
    ],
)
def test_what_stands_still_is_moved_as_at_rest(picture: str, s: int, u: int, expected: str) -> None:
    assert decided(deploying(picture, s=s, u=u, paused_at=NOW)) == expected


@pytest.mark.parametrize(
    ("picture", "s", "expected"),
    [
        ("▣|", 0, "wait"),
        ("▣|■", 1, "wait"),
        ("▣|■", 2, "wait"),
        ("▣■|■", 2, "drain ▣"),
        ("■|▣", 1, "drain ▣"),
        ("▣▣|■", 2, "drain ▣"),
    ],
)
def test_what_stands_still_keeps_an_old_one_or_the_new_revision_would_take_over(
    picture: str, s: int, expected: str
) -> None:
    assert decided(deploying(picture, 1, s=s, u=int(s == 0), paused_at=NOW)) == expected


def test_what_stands_still_keeps_as_many_as_the_grown_deployment_needs() -> None:
    grown = deploying("■|▣", 2, s=1, u=0, paused_at=NOW, rollout={"desired_at_start": 1, "steps": 2})
    assert decided(grown) == "wait"


def test_a_canary_that_has_no_requests_any_more_answers_none_of_a_paused_way_back() -> None:
    rollout = {"stage": 1, "weight": 0, "weight_known_at": NOW}
    back = rolling_back("▣■|■", 2, policy=canary(), rollout=rollout, paused_at=NOW)
    assert decided(back) == "wait"


def test_one_that_is_sick_there_for_too_long_is_replaced_as_anywhere() -> None:
    rollout = {"stage": 1, "weight": 500, "weight_known_at": NOW}
    sick = deploying("■■■|▲", policy=canary(), rollout=rollout)
    there = replace(sick, routes=(*sick.routes[:-1], replace(sick.routes[-1], is_misplaced=True)))
    assert decided(there) == decided(sick) == "drain ▲"
