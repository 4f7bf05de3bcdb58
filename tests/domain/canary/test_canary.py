"""A canary, cycle by cycle: its replicas, then its weight, then the rest; each decision as a picture."""

from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import weight_known
from domain.handlers.dispatch import cycle
from domain.model.canary import CanaryState
from domain.model.decision import Stage
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.planning.simulator import Fates, World
from domain.planning.wait_explanation import why
from domain.steering.verbs import abort, pause, promote, resume
from domain.strategies.budget import Budget
from domain.text.errors import WrongStateError
from tests.support.people.people import activate_revision, asking
from tests.support.pictures.pictures import (
    NOW,
    READY,
    ROLLING_BACK,
    V1,
    V2,
    V3,
    blue_green,
    deploying,
    happens,
    resting,
    rolling_update,
)
from tests.support.pictures.policies import canary
from tests.support.pictures.simulation import applied
from tests.support.pictures.values_within import canary_of

SHORT = canary(steps=["5%", "50%"])
TIMED = canary(steps=[{"weight": "5%", "seconds": 60}, "50%"])
KNOWN: dict[str, Any] = {"weight_known_at": NOW - timedelta(seconds=59)}
FIRST: dict[str, Any] = {"stage": 1, "weight": 500, **KNOWN}
SECOND: dict[str, Any] = {"stage": 2, "weight": 5000, **KNOWN}
RISING: dict[str, Any] = {**SECOND, "weight": 3333}


def at_stage(picture: str, n: int, policy: DeploymentPolicy = SHORT, **rollout: Any) -> Deployment:
    return deploying(picture, n, policy=policy, rollout={"weight": 0, **rollout})


def step(deployment: Deployment) -> str:
    decision = EVALUATOR.evaluate_one(deployment, NOW)
    match decision.changes.stage:
        case Stage(weight=int(weight)):
            return f"{weight / 100:g} %"
        case Stage():
            return "the rest"
    return happens(deployment, decision)


@pytest.mark.parametrize(
    ("picture", "n", "rollout", "expected"),
    [
        # its first replica comes up beside all old ones, and every proxy must know of it before it gets a weight
        ("■■■|", 3, {}, "create 1"),
        ("■■■|■", 3, {}, "wait"),
        ("■■■|■", 3, KNOWN, "5 %"),
        ("■|", 1, {}, "create 1"),
        ("■|■", 1, KNOWN, "5 %"),
        # a weight that is not known everywhere is waited for; one that is, until somebody says so
        ("■■■|■", 3, {"stage": 1, "weight": 500}, "wait"),
        ("■■■|■", 3, FIRST, "wait"),
        # the next one: as much of it as its replicas carry, and old ones leave for what every proxy knows that it gets
        ("■■■|■", 3, {**FIRST, "promote_requested": True}, "33.33 %"),
        ("■■■|■", 3, RISING | {"weight_known_at": None}, "wait"),
        ("■■■|■", 3, RISING, "drain ■"),
        ("■■|■", 3, RISING, "create 1"),
        ("■■|■◇", 3, RISING, "wait"),
        ("■■|■■", 3, RISING, "50 %"),
        # too few old ones for what they get, as the release before left them: the canary's place goes to old ones
        ("■■|■◇", 3, {**FIRST, "promote_requested": True}, "drain ◇"),
        ("■■|■■", 3, {**SECOND, "promote_requested": True}, "the rest"),
        # the rest is a rolling update that keeps the canary
        ("■■|■■", 3, {"stage": 3, "weight": None}, "drain ■"),
        ("■|■■", 3, {"stage": 3, "weight": None}, "create 1"),
        ("|■■■", 3, {"stage": 3, "weight": None}, "completed"),
        # what either side loses is replaced on its side
        ("■■|■", 3, FIRST, "create 1"),
        ("■■■|", 3, FIRST, "create 1"),
        ("■■■|▲", 3, FIRST, "drain ▲"),
        ("■■▲|■", 3, FIRST, "drain ▲"),
        # who comes into traffic but is not healthy is nobody to spare another for
        ("▲◌|■■", 2, FIRST, "promote ◇"),
        # a size from somebody in the middle: both sides follow
        ("■■■|■", 5, FIRST, "create 2"),
        ("■■■■■|■", 3, FIRST, "drain ■■"),
        ("■■■|■", 0, FIRST, "drain ■■■■"),
        # as many canary replicas as the weight needs, rounded up
        ("■■■■■■■■■■|■", 10, {**FIRST, "promote_requested": True}, "10 %"),
        ("■■■■■■■■■■|■", 10, {**SECOND, "weight": 1000}, "drain ■"),
        ("■■■■■■|■■■■■", 10, {**SECOND, "weight": 4000}, "50 %"),
    ],
)
def test_canary(picture: str, n: int, rollout: dict[str, Any], expected: str) -> None:
    assert step(at_stage(picture, n, **rollout)) == expected


def test_a_step_is_over_when_its_seconds_have_passed_since_every_proxy_knew() -> None:
    looking = at_stage("■■■|■", 3, TIMED, **FIRST)
    decision = EVALUATOR.evaluate_one(looking, NOW)
    assert decision.reason == "waiting: the canary has 5 % of the requests, for 1 more s"
    assert (decision.recheck_at, decision.clock_stopped) == (NOW + timedelta(seconds=1), True)
    then = EVALUATOR.evaluate_one(looking, NOW + timedelta(seconds=1))
    assert then.reason == "the canary gets 33.33 % of the requests, on the way to 50 %"
    assert "in 1 s the next step: the canary gets 33.33 %" in why(looking, NOW).sentence
    assert "'rollway promote web' continues" in why(at_stage("■■■|■", 3, **FIRST), NOW).sentence


def test_a_pause_stops_the_time_of_a_step() -> None:
    looking = at_stage("■■■|■", 3, TIMED, **FIRST)
    paused = pause(looking, asking(looking, NOW)).deployment
    later = NOW + timedelta(hours=1)
    assert cycle(paused, later).reason.startswith("waiting: it is paused")
    resumed = resume(paused, asking(paused, later)).deployment
    assert resumed.rollout
    assert canary_of(resumed.rollout).weight_known_at == later - timedelta(seconds=59)


def test_a_step_whose_weight_became_known_in_a_pause_begins_when_that_ends() -> None:
    looking = at_stage("■■■|■", 3, TIMED, **{**FIRST, "weight_known_at": None})
    paused = pause(looking, asking(looking, NOW)).deployment
    known, later = weight_known(paused, NOW + timedelta(minutes=1)), NOW + timedelta(hours=1)
    resumed = resume(known, asking(known, later)).deployment
    assert resumed.rollout
    assert canary_of(resumed.rollout).weight_known_at == later


def test_a_weight_is_nobodys_on_the_way_back_and_none_is_known() -> None:
    aborted = abort(at_stage("■■■|■", 3, **FIRST), asking(at_stage("", 3), NOW)).deployment
    left = canary_of(aborted.rollout)
    assert (aborted.status, left.weight, left.weight_known_at) == (ROLLING_BACK, 0, None)
    late = at_stage("■■■|", 3, **FIRST, deadline=NOW - timedelta(seconds=1))
    expired = applied(cycle(late, NOW), NOW)
    assert expired.rollout
    assert (expired.status, canary_of(expired.rollout).weight) == (ROLLING_BACK, 0)


def test_a_promotion_is_for_one_weight_and_a_full_one_for_all() -> None:
    looking = at_stage("■■■|■", 3, **{**FIRST, "promote_requested": True})
    weighed = applied(cycle(looking, NOW), NOW).rollout
    assert weighed
    assert (canary_of(weighed).stage, canary_of(weighed).weight, weighed.promote_requested) == (2, 3333, False)
    ahead = applied(cycle(at_stage("■■|■■", 3, **{**RISING, "promote_requested": True}), NOW), NOW).rollout
    assert ahead and ahead.promote_requested, "meant is the step, not the way to it"  # noqa: PT018
    rest = promote(at_stage("■■■|", 3, **KNOWN), full=True).deployment
    assert rest.rollout
    assert (canary_of(rest.rollout).weight, canary_of(rest.rollout).weight_known_at) == (None, None)
    assert step(rest) == "create 1"
    assert promote(rest).already
    assert promote(rest, full=True).already
    with pytest.raises(WrongStateError, match="no weights to pass by"):
        promote(deploying("■■|□□", policy=blue_green()), full=True)
    with pytest.raises(WrongStateError, match="moves the traffic by itself"):
        promote(deploying("■■|◇", policy=rolling_update()))


def test_an_undo_and_a_revision_without_a_rollout_have_no_weight() -> None:
    ready = resting("■■■|", 3, READY, current_revision_id=V1)
    begun = activate_revision(ready, V2, SHORT, NOW).deployment.rollout
    assert begun
    assert begun.canary == CanaryState(stage=0, weight=0, weight_known_at=None)
    superseded = activate_revision(at_stage("■■■|■", 3, **FIRST), V3, SHORT, NOW, supersede=True).deployment.rollout
    assert superseded
    assert superseded.canary == CanaryState(stage=0, weight=0)
    assert weight_known(ready, NOW) is ready


def test_a_whole_canary_as_a_film() -> None:
    ready = resting("■■■|", 3, READY, current_revision_id=V1)
    begun = activate_revision(ready, V2, canary(steps=[{"weight": "5%", "seconds": 60}]), NOW).deployment
    world = World(begun, NOW, Fates())
    world.run(1000)
    said = [look.decision.reason for look in world.looks if look.decision.changes_anything]
    assert said == [
        "creating 1 canary",
        "the canary gets 5 % of the requests",
        "the last step of the canary is over: the rest follows",
        "draining 1 (at least 3 of 3 stay)",
        "creating 1 new (3 live + 1 ≤ 4)",
        "draining 1 (at least 3 of 3 stay)",
        "creating 1 new (3 live + 1 ≤ 4)",
        "draining 1 (at least 3 of 3 stay)",
        "all 3 replicas run the new revision",
    ]
    assert (world.at - NOW).total_seconds() == 63


def test_a_number_of_replicas_and_the_budget() -> None:
    policy = canary(steps=["0.5%"], replicas=3, max_surge=2, max_unavailable="10%")
    assert EVALUATOR.budget(deploying("", 10, policy=policy)) == Budget(10, 12, 9, keep_in_place=9)
    assert step(at_stage("■■■■■■■■■■|", 10, policy)) == "create 2, drain ■"
    assert step(at_stage("■■|", 2, policy)) == "create 2"
