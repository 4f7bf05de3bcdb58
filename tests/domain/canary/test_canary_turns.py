"""A canary that turns back or is tried again: which side answers then, and which decision comes first.

n=10, surge 1, at 90 %:   ■■|■■■■■■■■■   two old ones carry a fifth of the requests
"""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.effects import after
from domain.handlers.dispatch import cycle
from domain.model.answer_counts import Answers
from domain.model.canary import Evidence
from domain.model.deployment import Deployment
from domain.model.policy import DeploymentPolicy
from domain.model.states import PROVISIONING, ROLLING_BACK, Verdict
from domain.steering.verbs import abort, promote, retry
from tests.support.people.people import activate_revision, asking, request
from tests.support.pictures.pictures import NOW, READY, V2, V3, deploying, resting
from tests.support.pictures.policies import canary
from tests.support.pictures.values_within import canary_of, with_canary

PLAIN = canary(steps=["10%", "90%"])
AT_MOST = {"at_least": {"requests": 100, "seconds": 0}, "at_most": {"seconds": 60}, "if_undecided": "abort"}
JUDGED = canary(steps=["10%", "90%"], judge=AT_MOST)
HARM = Evidence(NOW, Answers(900, 900, begun=900), Answers(100, begun=100), 1, 1)
LARGE = "■■|■■■■■■■■■"


def at(
    picture: str, weight: int, stage: int, known_for: float, policy: DeploymentPolicy = JUDGED, **rollout: Any
) -> Deployment:
    its = {"stage": stage, "weight": weight, "weight_known_at": NOW - timedelta(seconds=known_for)}
    return deploying(picture, 10, policy=policy, rollout={**its, **rollout})


def weight_of(deployment: Deployment) -> int | None:
    return canary_of(deployment.rollout).weight


def test_what_is_tried_again_on_its_way_back_begins_with_what_old_ones_cannot_answer() -> None:
    large = at(LARGE, 9000, 2, 9, PLAIN)
    aborted = abort(large, asking(large, NOW)).deployment
    assert (aborted.status, weight_of(aborted)) == (ROLLING_BACK, 8000)
    again = retry(aborted, request(aborted, V2, PLAIN), None, asking(aborted, NOW)).deployment
    assert (again.status, weight_of(again), canary_of(again.rollout).stage) == (PROVISIONING, 8000, 0)
    other = activate_revision(aborted, V3, PLAIN, NOW, supersede=True).deployment
    assert weight_of(other) == 0
    whole = activate_revision(resting("■■■", status=READY), V3, PLAIN, NOW).deployment
    assert weight_of(whole) == 0


@pytest.mark.parametrize("paused", [False, True])
def test_harm_that_a_judge_finds_on_the_way_back_takes_all_away_at_the_next_look(*, paused: bool) -> None:
    back = replace(at(LARGE, 8000, 2, 9), status=ROLLING_BACK, paused_at=NOW if paused else None)
    assert weight_of(after(cycle(back, NOW), NOW)) == 8000
    assert back.rollout is not None
    harmed = replace(back, rollout=with_canary(back.rollout, evidence=(HARM,)))
    assert weight_of(after(cycle(harmed, NOW), NOW)) == (8000 if paused else 0)


def test_undecided_and_then_abort_is_no_harm_and_goes_back_as_old_ones_can_answer() -> None:
    for evidence, left in (((), 8000), ((HARM,), 0)):
        decision = cycle(at(LARGE, 9000, 2, 60, evidence=evidence), NOW)
        assert (decision.verdict, decision.to) == (Verdict.GIVE_UP, ROLLING_BACK)
        assert decision.reason.startswith(
            "failures: canary 100 % (900 of 900)" if evidence else "undecided after 1 min"
        )
        assert weight_of(after(decision, NOW)) == left


def test_what_a_person_has_promoted_is_not_taken_back_when_the_judges_time_is_over() -> None:
    """The replicas of the next weight are still starting when its judge gives up."""
    looked_at = at("■■■■■■■■■■|■", 1000, 1, 61)
    assert cycle(looked_at, NOW).to == ROLLING_BACK
    promoted = promote(looked_at).deployment
    for _ in range(3):
        decision = cycle(promoted, NOW)
        assert decision.to == PROVISIONING
        promoted = after(decision, NOW)
    harmed = promote(at("■■■■■■■■■■|■", 1000, 1, 61, evidence=(HARM,))).deployment
    assert cycle(harmed, NOW).to == ROLLING_BACK
