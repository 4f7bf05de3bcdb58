"""A canary that is held or paused keeps both of its sides as they are: what comes for another one makes none larger."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.handlers.dispatch import cycle
from domain.model.answer_counts import Answers, Copies
from domain.model.canary import Evidence
from domain.model.decision import Stage
from domain.model.deployment import Hold
from tests.domain.canary.test_baseline import beside
from tests.support.pictures.pictures import NOW, PROVISIONING, ROLLING_BACK, deploying, drawn_changes
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
        # before its first weight it answers nothing, and comes again when the rollout continues
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


@pytest.mark.parametrize(("picture", "n"), [("■■/■■|■", 3), ("■■/◇◇|◇", 3), ("■■■/■|■", 3), ("/■■■|■", 2)])
def test_young_ones_that_are_no_baseline_make_it_no_larger_before_the_first_weight(picture: str, n: int) -> None:
    standing = replace(beside(picture, n, s=4, steps=2), paused_at=NOW)
    assert drawn_changes(standing, cycle(standing, NOW).changes) == ""


def test_what_an_earlier_try_has_left_falls_while_a_group_or_a_freeze_holds_it_and_not_in_a_pause() -> None:
    left = {"stage": 0, "weight": 8000, "weight_known_at": NOW - timedelta(seconds=9)}
    retried = deploying("■■■■■|■■■■■■", 10, policy=canary(steps=["5%"]), rollout=left)
    held = cycle(replace(retried, hold=Hold("held by the group", NOW + timedelta(seconds=30))), NOW)
    assert (held.to, held.changes.stage) == (PROVISIONING, Stage(0, 5000))
    assert cycle(replace(retried, paused_at=NOW), NOW).changes.stage is None


def test_copies_that_show_harm_lead_back_in_a_freeze_too_and_a_person_who_paused_looks_on() -> None:
    policy = canary(mirror="10%", steps=["5%"], judge={})
    seen = Evidence(NOW, Answers(), Answers(500, begun=500), 1, 1, Copies(500, 400))
    mirrored = {"stage": 1, "weight": 0, "weight_known_at": NOW - timedelta(seconds=9), "evidence": (seen,)}
    looked_at = deploying("■■■|■", policy=policy, rollout=mirrored)
    frozen = replace(looked_at, hold=Hold("held by the freeze", NOW + timedelta(days=2)))
    assert cycle(looked_at, NOW).to == cycle(frozen, NOW).to == ROLLING_BACK
    assert cycle(replace(looked_at, paused_at=NOW), NOW).to == PROVISIONING
