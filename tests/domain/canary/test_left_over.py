"""What another canary left: first to go, as soon as both sides can spare it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.cycle.evaluator import EVALUATOR
from tests.support.pictures.pictures import NOW, V3, deploying, happens
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
