"""A canary that is held or paused keeps both of its sides as they are: what comes for another one makes none larger."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.handlers.cycle import cycle
from tests.support.pictures.pictures import NOW, deploying, drawn_changes
from tests.support.pictures.policies import canary
from tests.support.pictures.simulation import all_started, applied


@pytest.mark.parametrize("surge", [2, 5, "100%"])
@pytest.mark.parametrize(
    ("picture", "stage", "weight", "expected"),
    [
        # exchanged one for one
        ("■■■■■■■■■■|▣", 1, 500, ["create 1", "drain ▣"]),
        ("■■■■■■■■■■|▲", 1, 500, ["create 1", "drain ▲"]),
        ("■■■■■■■■■■|", 1, 500, ["create 1"]),
        ("▣■■■■■■■■■|■", 1, 500, ["create 1", "drain ▣"]),
        # before its first weight it answers nothing, and comes again when the rollout goes on
        ("■■■■■■■■■■|▣", 0, 0, ["drain ▣"]),
        ("■■■■■■■■■■|▲", 0, 0, ["drain ▲"]),
        ("■■■■■■■■■■|■", 0, 0, []),
    ],
)
def test_what_is_sick_or_on_a_drained_host_is_exchanged(
    surge: int | str, picture: str, stage: int, weight: int, expected: list[str]
) -> None:
    rollout = {"stage": stage, "weight": weight, "weight_known_at": NOW - timedelta(seconds=9), "steps": 2}
    policy = canary(steps=["5%"], max_surge=surge)
    deployment = deploying(picture, 10, policy=policy, rollout=rollout, paused_at=NOW)
    seen: list[str] = []
    while (decision := cycle(deployment, NOW)).changes:
        seen.append(drawn_changes(deployment, decision.changes))
        assert len(seen) < 5, seen
        deployment = replace(all_started(applied(decision, NOW), NOW), paused_at=NOW)
    assert seen == expected
