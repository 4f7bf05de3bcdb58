"""A canary with a fresh baseline: new replicas of the old revision beside it, within the budget; as pictures."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cycle.evaluator import EVALUATOR
from domain.model.answer_counts import Answers
from domain.model.canary import Evidence
from domain.model.decision import Decision
from domain.model.deployment import Deployment
from domain.model.picture import picture
from domain.model.policy import DeploymentPolicy
from domain.model.states import Verdict
from domain.planning.simulator import Fates, World
from domain.steering.verbs import abort, promote, scale
from domain.strategies.builtin import parse_policy
from domain.strategies.canary.steps import baseline
from domain.text.errors import InvalidInputError
from tests.domain.canary.test_canary import step
from tests.support.people.people import activate_revision, asking
from tests.support.pictures.pictures import NOW, READY, V1, V2, V3, deploying, resting
from tests.support.pictures.simulation import until_it_waits
from tests.support.pictures.values_within import canary_of

JUDGE: dict[str, Any] = {"baseline": "fresh"}
FIRST: dict[str, Any] = {"stage": 1, "weight": 500, "weight_known_at": NOW - timedelta(seconds=59)}


def canary(**spec: Any) -> DeploymentPolicy:
    return parse_policy({"strategy": "canary", "spec": {"steps": ["5%", "50%"], "judge": JUDGE, **spec}})


def beside(picture: str, n: int = 3, s: int = 2, **rollout: Any) -> Deployment:
    """Old ones, a slash, those that are no older than the rollout, a bar, and the canary."""
    old, _, right = picture.partition("/")
    policy = canary(max_surge=s)
    deployment = deploying(old + right, n, policy=policy, rollout={"weight": 0, **rollout})
    fresh = range(len(old), len(old) + right.index("|"))
    routes = [
        replace(route, created_at=NOW) if place in fresh else route for place, route in enumerate(deployment.routes)
    ]
    return replace(deployment, routes=tuple(routes))


PROMOTED = {**FIRST, "promote_requested": True}
RISING = {**FIRST, "stage": 2, "weight": 3333}


@pytest.mark.parametrize(
    ("picture", "surge", "rollout", "expected"),
    [
        # both begin in one cycle, and both must be there before the canary gets a weight
        ("■■■/|", 2, {}, "create 2"),
        ("■■■/◇|◇", 2, {}, "wait"),
        ("■■■/◇|■", 2, {"weight_known_at": NOW}, "wait"),
        ("■■■/■|◇", 2, {"weight_known_at": NOW}, "wait"),
        ("■■■/■|■", 2, {"weight_known_at": NOW}, "5 %"),
        ("■■■/■|■", 2, FIRST, "wait"),
        # what either loses is replaced; what an old one loses is no older than the rollout either
        ("■■■/|■", 2, FIRST, "create 1"),
        ("■■/■|■", 2, FIRST, "create 1"),
        ("■■/■■|■", 2, FIRST, "wait"),
        ("■■■/▲|■", 2, FIRST, "drain ▲"),
        ("■■■/▲|■", 3, FIRST, "create 1"),
        # the next weight needs more of both: where the surge has no room for them, the eldest go for them
        # once the weight that there are replicas for is known
        ("■■■/■|■", 2, PROMOTED, "33.33 %"),
        ("■■■/■|■", 2, RISING, "drain ■"),
        ("■■/■|■", 2, RISING, "create 1, drain ■"),
        ("■/■|■◇", 2, RISING, "create 1"),
        ("■/■■|■■", 2, RISING, "50 %"),
        # and where it has, none does
        ("■■■/■|■", 4, PROMOTED, "create 2"),
        ("■■■/■■|■■", 4, PROMOTED, "50 %"),
        # all are old that are not older than the rollout: as many as before go on
        ("/■■■■|■", 2, FIRST, "wait"),
        # past the last weight they are old ones as the others are
        ("■■■/■|■", 2, {"stage": 3, "weight": None}, "drain ■■"),
        ("/■|■■■", 2, {"stage": 3, "weight": None}, "drain ■"),
    ],
)
def test_a_fresh_baseline(picture: str, surge: int, rollout: dict[str, Any], expected: str) -> None:
    assert step(beside(picture, s=surge, **rollout)) == expected


def test_what_another_canary_left_goes_for_it_first() -> None:
    made = beside("■■/■|■■", stage=2, weight=5000, weight_known_at=NOW)
    elder, left, *others = made.routes
    superseded = replace(made, routes=(elder, replace(left, revision_id=V3), *others))
    assert decide(superseded).changes.drain_route_ids == (left.id,)
    waits = until_it_waits(superseded, NOW)
    assert waits.rollout
    assert (picture(waits.routes, V1, V2), len(baseline(waits, waits.rollout))) == ("■■◇|■■", 2)


def test_while_too_few_serve_no_old_one_goes_for_it() -> None:
    at_half: dict[str, Any] = {"stage": 2, "weight": 5000, "weight_known_at": NOW}
    assert step(beside("■■■■■■■■■■/|■■", n=10, **at_half)) == "drain ■■"
    assert step(beside("■■■■/◇◇◇|◇◇◇◇◇", n=10, **at_half)) == "wait"


def decide(deployment: Deployment) -> Decision:
    return EVALUATOR.evaluate_one(deployment, NOW)


def test_its_replicas_are_waited_for_in_words() -> None:
    assert decide(beside("■■■/◇|■", weight_known_at=NOW)).reason == (
        "waiting: 1 of 1 canary replicas healthy, 0 starting, 0 unhealthy; 0 of 1 of its baseline"
    )


def test_the_judge_compares_with_the_baseline_and_says_so() -> None:
    at = NOW - timedelta(seconds=1)
    harmful = (Evidence(at, Answers(50, 40, begun=50), Answers(50, begun=50), 1, 1),)
    decision = decide(beside("■■■/■|■", **FIRST, evidence=harmful))
    assert decision.verdict is Verdict.GIVE_UP
    assert decision.reason.startswith("failures: canary 80 % (40 of 50), baseline none of 50, worse ")


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        # on the way back, and for a rollout that takes its place, they are old ones as the others are
        (lambda canary: abort(canary, asking(canary, NOW)).deployment, "■■■"),
        (lambda canary: scale(canary, 2).deployment, "■■■|■"),
        (lambda canary: scale(canary, 0).deployment, "|"),
        (lambda canary: promote(canary, full=True).deployment, "■■|■◇◇"),
        (lambda canary: activate_revision(canary, V3, canary.rollout.policy, NOW, supersede=True).deployment, "■■■■|◇"),
    ],
)
def test_when_the_canary_ends(end: Any, expected: str) -> None:
    left = until_it_waits(end(beside("■■■/■|■", **FIRST)), NOW)
    assert picture(left.routes, left.current_revision_id, left.deploying_revision_id) == expected


def test_a_whole_canary_with_a_baseline_as_a_film() -> None:
    ready = resting("■■■|", 3, READY, current_revision_id=V1)
    policy = canary(max_surge=2, judge={**JUDGE, "if_undecided": "promote", "at_most": {"seconds": 5}})
    world = World(activate_revision(ready, V2, policy, NOW).deployment, NOW, Fates())
    world.run(1000)
    seen = [
        (look.decision.reason.partition(", for")[0], picture(look.after.routes, V1, V2))
        for look in world.looks
        if look.decision.changes_anything
    ]
    assert seen == [
        ("creating 1 canary, creating 1 old", "■■■◇|◇"),
        ("the canary gets 5 % of the requests", "■■■■|■"),
        ("the canary gets 33.33 % of the requests, on the way to 50 %", "■■■■|■"),
        ("draining 1 (at least 3 of 3 stay)", "■■■|■"),
        ("creating 1 canary, draining 1 (at least 3 of 3 stay)", "■■|■◇"),
        ("creating 1 old", "■■◇|■◇"),
        ("the canary gets 50 % of the requests", "■■■|■■"),
        ("the last step of the canary is over: the rest follows", "■■■|■■"),
        ("draining 2 (at least 3 of 3 stay)", "■|■■"),
        ("creating 1 new (3 live + 1 ≤ 5)", "■|■■◇"),
        ("draining 1 (at least 3 of 3 stay)", "|■■■"),
        ("all 3 replicas run the new revision", "|■■■"),
    ]


@pytest.mark.parametrize(
    ("spec", "right"),
    [
        ({}, "max_surge must be a number of at least 2 with judge.baseline fresh"),
        ({"max_surge": "200%"}, "max_surge must be a number of at least 2"),
        ({"replicas": 3, "max_surge": 5}, "max_surge must be a number of at least 6"),
        ({"steps": ["5%", "51%"], "max_surge": 2}, "steps must have weights of at most 50%"),
    ],
)
def test_what_can_never_fit_is_refused(spec: dict[str, Any], right: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        canary(**spec)
    assert right in refused.value.message
    assert canary(max_surge=2)
    assert canary(max_surge=6, replicas=3)


@given(n=st.integers(1, 40), weight=st.integers(1, 50), surge=st.integers(2, 9))
def test_whatever_the_size_both_fit_beside_an_old_one(n: int, weight: int, surge: int) -> None:
    policy = canary(steps=[f"{weight}%"], max_surge=surge)
    ready = resting("■" * n + "|", n, READY, current_revision_id=V1)
    world = World(activate_revision(ready, V2, policy, NOW).deployment, NOW, Fates())
    world.run(60)
    deployment = world.deployment
    assert deployment.rollout
    assert canary_of(deployment.rollout).stage == 1
    fresh = len(baseline(deployment, deployment.rollout))
    old, new = (sum(route.revision_id == revision for route in deployment.routes) for revision in (V1, V2))
    assert (fresh, new) == (-(-n * weight // 100),) * 2
    assert old - fresh == min(n, n + surge - 2 * new) >= 1
