"""A new revision that answers nobody ends its rollout, whatever the strategy; old ones stay at hand till then."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from domain.cycle.effects import after
from domain.cycle.evaluator import EVALUATOR
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, Hold
from domain.model.policy import DeploymentPolicy, RolloutLimits
from tests.support.pictures.pictures import (
    NOW,
    PROVISIONING,
    READY,
    RECREATE,
    ROLLING_BACK,
    V3,
    blue_green,
    deploying,
    happens,
    rolling_update,
    route_id,
)
from tests.support.pictures.policies import canary

SAID = "the new revision answered none of 20 requests"


def looked_at(deployment: Deployment, now: datetime = NOW) -> tuple[Any, str]:
    decision = cycle(deployment, now)
    return after(decision, now).status, decision.reason


@pytest.mark.parametrize(
    ("picture", "n", "policy"),
    [
        ("■■■|■", 3, rolling_update(1, 0)),
        ("|■■■", 3, rolling_update(1, 0)),
        ("■■■|■■■", 3, blue_green()),
        ("|■", 1, RECREATE),
        ("■■■|■", 3, canary(steps=["5%"])),
    ],
)
def test_it_ends_every_strategy_even_one_that_is_complete(picture: str, n: int, policy: DeploymentPolicy) -> None:
    def at(count: int | None) -> Deployment:
        return deploying(picture, n, policy=policy, rollout={"unanswered": count})

    assert looked_at(at(20)) == (ROLLING_BACK, SAID)
    for count in (19, 0, None):
        assert looked_at(at(count))[1] != SAID


def test_a_freeze_does_not_hold_it_back_and_a_pause_by_a_person_does() -> None:
    assert looked_at(deploying("■■■|■", rollout={"unanswered": 20}, hold=Hold("a freeze", NOW)))[1] == SAID
    paused = deploying("■■■|■", rollout={"unanswered": 20}, paused_at=NOW)
    assert looked_at(paused)[0] == PROVISIONING


@pytest.mark.parametrize(("limit", "status"), [(21, PROVISIONING), (None, PROVISIONING), (5, ROLLING_BACK)])
def test_its_limit_is_a_setting(limit: int | None, status: Any) -> None:
    limits = RolloutLimits(unanswered=limit)
    assert looked_at(deploying("■■■|■", limits=limits, rollout={"unanswered": 20}))[0] == status


def test_harm_is_harm_where_a_limit_has_passed_as_well() -> None:
    weighed = {"stage": 1, "weight": 6600, "weight_known_at": NOW, "unanswered": 20, "deadline": NOW}
    late = deploying("■|■■", policy=canary(steps=["66%"]), rollout=weighed)
    decision = cycle(late, NOW)
    assert decision.reason.startswith("the timeout of 1800 s has passed")
    left = after(decision, NOW).rollout
    assert left is not None
    assert left.canary is not None
    assert left.canary.weight == 0


GREEN = blue_green(auto_promote=True)
ONE_MORE = rolling_update(1, 0)


def unproven(picture: str, n: int, policy: DeploymentPolicy, **changed: Any) -> Deployment:
    limits = changed.pop("limits", None)
    return deploying(picture, n, policy=policy, limits=limits, rollout={"in_use": True, "unanswered": 0, **changed})


def step(deployment: Deployment) -> str:
    return happens(deployment, EVALUATOR.evaluate_one(deployment, NOW))


@pytest.mark.parametrize(
    ("picture", "n", "policy", "found"),
    [
        # as many as fit beside n new ones
        ("■|■", 1, ONE_MORE, "park ■"),
        ("■|■■■", 3, ONE_MORE, "park ■"),
        ("■■■|□□□", 3, GREEN, "completed: promote □□□, park ■■■"),
        ("■■|■■■", 3, rolling_update(1, 1), "drain ■, park ■"),
        # not while another old one stays
        ("■■|■■", 3, ONE_MORE, "drain ■"),
        # a sick one answers nobody
        ("▲|■■■", 3, ONE_MORE, "drain ▲"),
        # no place for more than n
        ("■|■■■", 3, rolling_update(0, 1), "drain ■"),
        ("■■|", 2, RECREATE, "drain ■■"),
    ],
)
def test_who_is_parked(picture: str, n: int, policy: DeploymentPolicy, found: str) -> None:
    assert step(unproven(picture, n, policy)) == found


@pytest.mark.parametrize(
    "changed",
    [
        {"in_use": False},
        {"unanswered": None},
        {"is_undo": True},
        {"limits": RolloutLimits(unanswered=None)},
        {"limits": RolloutLimits(unanswered_within_seconds=0)},
    ],
)
def test_nobody_is_parked_where_nobody_would_lead_back(changed: dict[str, Any]) -> None:
    assert step(unproven("■|■■■", 3, ONE_MORE, **changed)) == "drain ■"


def test_what_stops_counts_so_a_place_is_needed() -> None:
    assert step(unproven("■|■■■", 3, rolling_update(1, 0, count_stopping=True))) == "drain ■"


@pytest.mark.parametrize("policy", [ONE_MORE, GREEN, canary(steps=["5%"])], ids=lambda policy: policy.strategy)
@pytest.mark.parametrize("picture", ["■■|", "▫|", "▫■|"])
def test_at_size_0_nobody_is_parked_and_whoever_was_goes(picture: str, policy: DeploymentPolicy) -> None:
    nobody = unproven(
        picture, 0, policy, desired_at_start=0, stage=0, weight=0 if policy.strategy == "canary" else None
    )
    decision = cycle(nobody, NOW)
    assert not decision.changes.park_route_ids
    following = cycle(after(decision, NOW), NOW)
    assert following.changes != decision.changes or not decision.changes


def test_those_to_whom_a_way_back_leads_are_parked_and_not_what_another_rollout_left() -> None:
    left = unproven("■■|■■■", 3, rolling_update(1, 1))
    both = replace(left, routes=(left.routes[0], replace(left.routes[1], revision_id=V3), *left.routes[2:]))
    changes = EVALUATOR.evaluate_one(both, NOW).changes
    assert (changes.park_route_ids, changes.drain_route_ids) == ((route_id(0),), (route_id(1),))


def test_what_is_parked_holds_nothing_up_and_is_back_at_once() -> None:
    parked = after(cycle(unproven("■|■■■", 3, ONE_MORE), NOW), NOW)
    assert cycle(parked, NOW).to == READY
    back = replace(parked, status=ROLLING_BACK)
    assert happens(back, EVALUATOR.evaluate_back(back, NOW)) == "promote □"
