"""Until its first step a rollout that is held or paused has the size from before, under every strategy."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.handlers.dispatch import cycle
from domain.model.deployment import Hold
from domain.model.policy import DeploymentPolicy
from tests.support.pictures.pictures import (
    NOW,
    RECREATE,
    ROLLING_BACK,
    V1,
    V2,
    blue_green,
    deploying,
    drawn_changes,
    rolling_update,
)
from tests.support.pictures.policies import canary
from tests.support.pictures.simulation import all_started, applied

STANDS: dict[str, dict[str, Any]] = {
    "held": {"hold": Hold("held by the freeze", NOW + timedelta(days=2))},
    "paused": {"paused_at": NOW},
}
SURGE, ROOMLESS, GREEN = rolling_update(1, 0), rolling_update(0, 1), blue_green()
CANARY, WIDE = canary(steps=["5%"]), canary(steps=["5%"], max_surge=1, max_unavailable=3, replicas=3)
TO_COME: dict[str, Any] = {"stage": 0, "weight": 0}


def film(how: str, picture: str, policy: DeploymentPolicy, n: int, **rollout: Any) -> list[str]:
    """What happens until nothing does, while all that starts comes up."""
    rollout = {**(TO_COME if policy.strategy == "canary" else {}), **rollout}
    deployment = deploying(picture, n, policy=policy, rollout=rollout, **STANDS[how])
    seen: list[str] = []
    for _ in range(9):
        decision = cycle(deployment, NOW)
        if not decision.changes:
            return seen
        seen.append(drawn_changes(deployment, decision.changes))
        deployment = replace(all_started(applied(decision, NOW), NOW), **STANDS[how])
    raise AssertionError(seen)


@pytest.mark.parametrize("how", STANDS)
@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize(
    ("picture", "policy", "expected"),
    [
        ("■■■|", SURGE, []),
        ("■■▲|", SURGE, ["create 1", "drain ▲"]),
        ("▣■■|", SURGE, ["create 1", "drain ▣"]),
        ("■|", SURGE, ["create 2"]),
        ("■■▲|", ROOMLESS, ["drain ▲", "create 1"]),
        ("■■■|", CANARY, []),
        ("■■▲|", CANARY, ["create 1", "drain ▲"]),
        ("▣■■|", CANARY, ["create 1", "drain ▣"]),
        ("■|", CANARY, ["create 2"]),
        ("■■■|", GREEN, []),
        ("■■▲|", GREEN, ["drain ▲", "create 1"]),
        ("■|", GREEN, ["create 2"]),
        ("■■■|", RECREATE, []),
        ("■|", RECREATE, ["create 2"]),
    ],
)
def test_the_size_of_the_new_revision_waits_with_it(
    how: str, n: int, picture: str, policy: DeploymentPolicy, expected: list[str]
) -> None:
    assert film(how, picture, policy, n, desired_at_start=3, desired_with_revision=n) == expected


@pytest.mark.parametrize("how", STANDS)
def test_a_sick_one_that_recovers_beside_its_replacement_is_one_too_many_and_no_new_size(how: str) -> None:
    for policy in (SURGE, CANARY):
        assert film(how, "■■■■|", policy, 1, desired_at_start=3, desired_with_revision=1) == ["drain ■"]
        assert film(how, "■■■■|", policy, 6, desired_at_start=3, desired_with_revision=6) == ["drain ■"]


@pytest.mark.parametrize("how", STANDS)
@pytest.mark.parametrize(("picture", "expected"), [("■|", ["create 2"]), ("|", ["create 3"]), ("■■■|", [])])
def test_a_canary_that_has_not_begun_takes_no_place_of_old_ones(how: str, picture: str, expected: list[str]) -> None:
    assert film(how, picture, WIDE, 3) == expected


@pytest.mark.parametrize(("picture", "expected"), [("■■|■", ["create 1"]), ("■|■", ["create 2"]), ("■■■|■", [])])
def test_a_canary_that_has_come_for_its_first_step_takes_its_own_place_alone(picture: str, expected: list[str]) -> None:
    assert film("paused", picture, WIDE, 3, steps=1) == expected


def test_nothing_starts_beside_what_may_not_run_beside_another_on_a_paused_way_back() -> None:
    for picture, expected in (("|■", "create 1"), ("|■■", ""), ("|", "create 2"), ("~|", "create 1"), ("|~", "")):
        paused = deploying(picture, 2, policy=RECREATE, status=ROLLING_BACK, paused_at=NOW)
        changes = cycle(paused, NOW).changes
        assert drawn_changes(paused, changes) == expected
        assert {spec.revision_id for spec in changes.rollout_specs} <= ({V2} if "■" in picture else {V1})


@pytest.mark.parametrize(
    ("picture", "n", "expected"),
    [
        ("|■", 3, ["create 2"]),
        ("|■■■", 3, []),
        ("▲|■", 1, []),
        ("|", 1, ["create 1"]),
        ("▲|", 1, ["create 1", "drain ▲"]),
    ],
)
def test_a_way_back_that_is_paused_starts_none_of_the_revision_that_it_leaves(
    picture: str, n: int, expected: list[str]
) -> None:
    deployment = deploying(picture, n, policy=SURGE, status=ROLLING_BACK, paused_at=NOW)
    seen: list[str] = []
    while (decision := cycle(deployment, NOW)).changes:
        assert {spec.revision_id for spec in decision.changes.rollout_specs} <= {V1}
        seen.append(drawn_changes(deployment, decision.changes))
        deployment = all_started(applied(decision, NOW), NOW)
    assert seen == expected
