"""What is left over of a canary: of another one, and of this one when all its replicas are dead or sick."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.handlers.dispatch import cycle
from domain.model.decision import WaitsFor
from domain.strategies.budget import Budget
from domain.strategies.canary.rollback import weight_back
from tests.support.pictures.pictures import NOW, ROLLING_BACK, V3, deploying, happens
from tests.support.pictures.policies import canary

KNOWN_AT = NOW - timedelta(seconds=59)


@pytest.mark.parametrize(
    ("old", "weight", "unavailable", "then"),
    [
        # one of ten old ones is lost, and the ceiling has no room: at 10 % nine and the canary carry all
        ("■■■■■■■■■", 1000, 0, "drain ■"),
        # at 5 % it is needed beside nine
        ("■■■■■■■■■", 500, 0, "wait"),
        ("■■■■■■■■■", 500, 1, "drain ■"),
        # the tenth is coming
        ("■■■■■■■■◇", 1000, 1, "wait"),
    ],
)
def test_it_goes_where_it_takes_the_place_of_an_old_one(old: str, weight: int, unavailable: int, then: str) -> None:
    policy = canary(steps=[f"{weight // 100}%"], max_unavailable=unavailable)
    rollout = {"stage": 1, "weight": weight, "weight_known_at": KNOWN_AT}
    beside = deploying(f"{old}■|■", 10, policy=policy, rollout=rollout)
    left = replace(beside.routes[9], revision_id=V3)
    beside = replace(beside, routes=(*beside.routes[:9], left, *beside.routes[10:]))
    decision = EVALUATOR.evaluate_one(beside, NOW)
    assert happens(beside, decision) == then
    assert set(decision.changes.drain_route_ids) <= {left.id}


def test_a_sick_canary_and_an_old_one_that_died_are_not_both_replaced_above_the_ceiling() -> None:
    rollout = {"stage": 1, "weight": 500, "weight_known_at": KNOWN_AT}
    both = deploying("■■|▲", 3, policy=canary(steps=["5%"]), rollout=rollout)
    assert happens(both, EVALUATOR.evaluate_one(both, NOW)) == "create 1, drain ▲"


def test_on_the_way_back_nothing_leaves_before_proxies_know_the_weight() -> None:
    rollout: dict[str, Any] = {"stage": 1, "weight": 2500, "desired_at_start": 3}
    back = deploying("■■|■■", 3, policy=canary(steps=["75%"]), status=ROLLING_BACK, rollout=rollout)
    waits = cycle(back, NOW).waits
    assert waits
    assert waits.kind is WaitsFor.PROXIES
    rollout["weight_known_at"] = KNOWN_AT
    known = deploying("■■|■■", 3, policy=canary(steps=["75%"]), status=ROLLING_BACK, rollout=rollout)
    assert cycle(known, NOW).reason == "draining 1 (at least 3 of 3 stay)"


@pytest.mark.parametrize(
    ("picture", "weight", "left"),
    [("■■|■■■", 7500, 5000), ("■|■", 5000, 5000), ("■|", 5000, 0), ("■▲|▲", 5000, 0), ("■■■■|■", 2000, 0)],
)
def test_on_the_way_back_a_canary_keeps_what_it_can_answer_and_old_ones_cannot(
    picture: str, weight: int, left: int
) -> None:
    back = deploying(picture, 4, policy=canary(steps=["75%"]), status=ROLLING_BACK)
    assert weight_back(back, weight, Budget(4, 5, 4)) == left
