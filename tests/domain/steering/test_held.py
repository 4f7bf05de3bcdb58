"""A rollout that is held or paused goes nowhere, but what dies is replaced, under every strategy."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.effects import after
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, Hold, StartFailures
from domain.model.policy import DeploymentPolicy
from domain.strategies.recreate import RecreateSpec
from tests.support.pictures.pictures import (
    NOW,
    ROLLING_BACK,
    V1,
    V2,
    V3,
    blue_green,
    deploying,
    drawn_changes,
    rolling_update,
)
from tests.support.pictures.policies import canary
from tests.support.pictures.values_within import with_canary

FREEZE = Hold("held by the freeze", NOW + timedelta(days=2))
STANDS: dict[str, dict[str, Any]] = {"held": {"hold": FREEZE}, "paused": {"paused_at": NOW}}
RECREATE = DeploymentPolicy("recreate", RecreateSpec())
SURGE, ROOMLESS, CANARY, GREEN = rolling_update(1, 0), rolling_update(0, 1), canary(steps=["50%"]), blue_green()


def stands(how: str, picture: str, policy: DeploymentPolicy, n: int = 3, **changed: Any) -> Deployment:
    found = deploying(picture, n, policy=policy, rollout=changed.pop("rollout", None), **{**STANDS[how], **changed})
    assert found.rollout
    return replace(found, rollout=with_canary(found.rollout, **CHOSEN)) if policy is CANARY else found


CHOSEN: dict[str, Any] = {"stage": 1, "weight": 5000, "weight_known_at": NOW - timedelta(seconds=9)}


def drawn(deployment: Deployment) -> str:
    return drawn_changes(deployment, cycle(deployment, NOW).changes) or "wait"


@pytest.mark.parametrize("how", STANDS)
@pytest.mark.parametrize(
    ("picture", "policy", "expected"),
    [
        # before its first step it is kept as at rest
        ("■■■|", SURGE, "wait"),
        ("■|", SURGE, "create 2"),
        ("|", SURGE, "create 3"),
        ("■■▲|", SURGE, "create 1"),
        ("■■▲|", ROOMLESS, "drain ▲"),
        ("■■■■|", SURGE, "drain ■"),
        ("■■|", GREEN, "create 1"),
        ("■|", RECREATE, "create 2"),
        # in its middle whoever is missing is an old one
        ("■■|■", SURGE, "wait"),
        ("■■|■◇", SURGE, "wait"),
        ("■|■", SURGE, "create 1"),
        ("■▲|■", SURGE, "create 1"),
        ("■■|▲", SURGE, "create 1"),
        ("■▲|■◇", SURGE, "wait"),
        ("■▲|■", ROOMLESS, "drain ▲"),
        ("◇▲|■", ROOMLESS, "wait"),
        ("|■■", SURGE, "create 1"),
        # what an exchange has taken away comes back
        ("~~~|", RECREATE, "wait"),
        ("~~|", RECREATE, "create 1"),
        ("|■■", RECREATE, "create 1"),
        # blue is kept, and green where there is one, but out of traffic
        ("■■■|□□□", GREEN, "wait"),
        ("■■|□□□", GREEN, "create 1"),
        ("■■■|□□", GREEN, "create 1"),
        # a canary keeps both of its sides
        ("■■|■■", CANARY, "wait"),
        ("■|■■", CANARY, "create 1"),
        ("■■|■", CANARY, "create 1"),
        ("■■|", CANARY, "create 2"),
    ],
)
def test_what_dies_is_replaced_and_nothing_goes_forward(
    how: str, picture: str, policy: DeploymentPolicy, expected: str
) -> None:
    deployment = stands(how, picture, policy)
    decision = cycle(deployment, NOW)
    assert drawn(deployment) == expected
    assert decision.clock_stopped
    assert decision.to == deployment.status
    assert decision.changes.stage is None


@pytest.mark.parametrize("how", STANDS)
def test_a_new_size_is_followed_before_the_first_step_and_in_the_middle(how: str) -> None:
    larger = stands(how, "■■■|", SURGE, 5)
    assert drawn(larger) == "create 2"
    smaller = stands(how, "■■■|■■", SURGE, 2)
    assert drawn(smaller) == "drain ■■"
    none = stands(how, "■■|■■", CANARY, 0)
    assert drawn(none) == "drain ■■■■"


@pytest.mark.parametrize("how", STANDS)
@pytest.mark.parametrize(
    ("picture", "policy", "changed"),
    [
        ("▫■■■|", GREEN, {}),
        ("▫■■■|□□□", GREEN, {}),
        # whole before its first step, in its middle, and where nothing is left but its end
        ("▫■■■|", SURGE, {}),
        ("▫■■|■", SURGE, {}),
        ("▫|■■■", SURGE, {"rollout": {"steps": 9}}),
        ("▫■■|■■", CANARY, {}),
    ],
)
def test_the_end_of_parking_is_looked_at(
    how: str, picture: str, policy: DeploymentPolicy, changed: dict[str, Any]
) -> None:
    parked, *others = (whole := stands(how, picture, policy, **changed)).routes
    elder = replace(whole, routes=(replace(parked, revision_id=V3), *others))
    assert drawn(elder) == "wait"
    assert cycle(elder, NOW).due_at == NOW + timedelta(minutes=1)


@pytest.mark.parametrize(
    ("picture", "policy"),
    [("■■■|▫", SURGE), ("■■■|▫", GREEN), ("■■■|▫", CANARY), ("▫■■|■■", CANARY), ("▫|■■■", CANARY)],
)
def test_the_end_of_parking_is_looked_at_on_a_paused_way_back(picture: str, policy: DeploymentPolicy) -> None:
    paused = stands("paused", picture, policy, status=ROLLING_BACK)
    back = replace(paused, routes=tuple(replace(r, revision_id=V3) if r.parked_until else r for r in paused.routes))
    assert cycle(back, NOW).due_at == NOW + timedelta(minutes=1)


def test_a_size_that_comes_with_the_new_revision_waits_with_it() -> None:
    held = stands("held", "■■|", SURGE, 5, rollout={"desired_at_start": 3, "desired_with_revision": 5})
    assert drawn(held) == "create 1"


def test_old_ones_that_came_up_beside_a_canary_stay_until_the_new_size_has_others() -> None:
    grown = {"desired_at_start": 0, "desired_with_revision": 2, "steps": 4}
    assert drawn(stands("held", "■■|", SURGE, 2, rollout=grown)) == "wait"
    assert drawn(stands("held", "■|", SURGE, 2, rollout=grown)) == "create 1"


def test_on_a_paused_way_back_too() -> None:
    paused = stands("paused", "■|■", SURGE, status=ROLLING_BACK)
    decision = cycle(paused, NOW)
    assert drawn(paused) == "create 1"
    assert decision.reason.startswith("waiting: it is paused; 'rollway resume web' continues; meanwhile creating 1 old")


@pytest.mark.parametrize(
    ("picture", "n", "weight", "expected"),
    [
        # for half of the requests one new one is needed of one or two, two of three
        ("■■|■", 1, 5000, "wait"),
        ("■■|■■", 2, 5000, "drain ■"),
        ("■■■|■■", 3, 5000, "wait"),
        ("■■|■", 1, 0, "drain ■"),
    ],
)
def test_on_a_paused_way_back_who_is_needed_for_a_weight_stays(
    picture: str, n: int, weight: int, expected: str
) -> None:
    paused = weighing(stands("paused", picture, CANARY, n, status=ROLLING_BACK), weight)
    assert drawn(paused) == expected
    assert (cycle(paused, NOW).due_at == NOW) is (expected != "wait")


@pytest.mark.parametrize("how", STANDS)
def test_the_last_replica_of_the_current_revision_stays_on_a_drained_host_whatever_another_rollout_left(
    how: str,
) -> None:
    both = stands(how, "▣■|■■", rolling_update(2, 0), 2, rollout={"steps": 2})
    assert drawn(both) == "drain ▣"
    elder, left, *new = both.routes
    assert drawn(replace(both, routes=(elder, replace(left, revision_id=V3), *new))) == "wait"


@pytest.mark.parametrize("picture", ["■■■|□", "■■■|□◌", "■■■|□□□", "■■■|◌◌◌", "■■■|□▲"])
def test_on_a_paused_way_back_green_stays_as_it_is(picture: str) -> None:
    paused = stands("paused", picture, GREEN, status=ROLLING_BACK)
    assert drawn(paused) == "wait"
    assert drawn(stands("paused", picture.replace("■■■", "■■"), GREEN, status=ROLLING_BACK)) == "create 1"


def test_a_place_that_a_stopping_one_takes_is_waited_for_and_nobody_leaves_for_it() -> None:
    counting = rolling_update(1, 2, count_stopping=True)
    assert drawn(stands("paused", "▣■■|■~", counting, 4, rollout={"steps": 2})) == "wait"
    assert drawn(stands("paused", "▣■■|■", counting, 4, rollout={"steps": 2})) == "create 1"
    assert drawn(stands("paused", "■■▲|■~", counting, 4, rollout={"steps": 2})) == "wait"


def weighing(deployment: Deployment, weight: int) -> Deployment:
    assert deployment.rollout
    return replace(deployment, rollout=with_canary(deployment.rollout, **{**CHOSEN, "weight": weight}))


def test_starts_that_fail_are_tried_ever_more_slowly() -> None:
    failing = replace(stands("held", "■■|", SURGE), start_failures=StartFailures(V1, 3, NOW))
    assert drawn(failing) == "wait"
    assert cycle(failing, NOW).due_at == NOW + timedelta(seconds=8)
    green = replace(stands("held", "■■■|□□", GREEN), start_failures=StartFailures(V2, 3, NOW))
    assert drawn(green) == "wait"
    assert cycle(green, NOW).due_at == NOW + timedelta(seconds=8)


def test_a_repair_is_no_step_so_a_rollout_that_has_not_moved_stays_held() -> None:
    held = stands("held", "■■|", SURGE)
    decision = cycle(held, NOW)
    assert decision.reason == "held by the freeze; meanwhile creating 1 (2 live + 1 ≤ 4)"
    left = after(decision, NOW).rollout
    assert held.rollout
    assert left == replace(held.rollout, clock_stopped_at=NOW)
