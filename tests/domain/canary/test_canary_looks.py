"""When a canary is looked at, and what its judge may do while something else holds it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.handlers.dispatch import cycle
from domain.model.answer_counts import Answers
from domain.model.canary import Evidence
from domain.model.deployment import Deployment, Hold
from domain.model.states import ROLLING_BACK, Verdict
from tests.domain.canary.test_canary import FIRST, SECOND, TIMED, at_stage
from tests.support.pictures.pictures import NOW, deploying
from tests.support.pictures.policies import canary

JUDGED = canary(steps=["5%", "50%"], judge={})
SECOND_LATER = NOW + timedelta(seconds=1)
HARM = Evidence(NOW - timedelta(seconds=1), Answers(50, 40, begun=50), Answers(950, begun=950), 1, 1)
FROZEN = Hold("held by the freeze f; then it continues by itself", NOW + timedelta(hours=1))


@pytest.mark.parametrize(
    ("picture", "rollout"),
    [
        ("■■■|■", {**FIRST, "weight_known_at": None}),  # a proxy is silent: the others send it requests already
        ("■■|■◇", SECOND),
        ("■■■|■", FIRST),
    ],
)
def test_a_judge_looks_once_a_second_from_the_first_request_whatever_else_is_waited_for(
    picture: str, rollout: dict[str, Any]
) -> None:
    decision = EVALUATOR.evaluate_one(at_stage(picture, 3, JUDGED, **rollout), NOW)
    assert (decision.verdict, decision.recheck_at) == (Verdict.SKIPPED, SECOND_LATER)


@pytest.mark.parametrize("picture", ["■|■", "|■"])
def test_a_canary_that_is_scaled_to_nothing_has_its_judge_as_long_as_proxies_may_send_requests(picture: str) -> None:
    leaving = at_stage(picture, 0, JUDGED, **{**FIRST, "weight_known_at": None})
    decision = EVALUATOR.evaluate_one(leaving, NOW)
    assert (decision.verdict, decision.recheck_at) == (Verdict.SKIPPED, SECOND_LATER)
    harmful = at_stage(picture, 0, JUDGED, **FIRST, evidence=(HARM,))
    assert cycle(harmful, NOW).to == ROLLING_BACK


def test_the_end_of_a_steps_seconds_is_looked_at_also_while_a_replica_is_waited_for() -> None:
    waiting = at_stage("■■■|◇", 3, TIMED, **FIRST)
    assert EVALUATOR.evaluate_one(waiting, NOW).recheck_at == SECOND_LATER


@pytest.mark.parametrize("picture", ["■■■|◇", "■■■|■"])
def test_before_it_has_requests_no_judge_looks(picture: str) -> None:
    assert EVALUATOR.evaluate_one(at_stage(picture, 3, JUDGED), NOW).recheck_at is None


@pytest.mark.parametrize(
    ("picture", "rollout", "seconds"),
    [
        ("■■■|■", {"weight": 0}, 90),  # healthy, and not for min_ready_seconds yet
        ("■■■|▲", FIRST, 30),  # until it is replaced
    ],
)
def test_it_is_looked_at_when_a_time_of_its_replicas_ends(
    picture: str, rollout: dict[str, Any], seconds: float
) -> None:
    policy = canary(steps=["5%", "50%"], min_ready_seconds=90)
    changed_now = deploying(picture, policy=policy, rollout=rollout, status_for=0)
    assert EVALUATOR.evaluate_one(changed_now, NOW).recheck_at == NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(("judge", "waits_for_person"), [(None, True), ({}, False), ({"dry_run": True}, True)])
def test_where_no_judge_decides_it_says_how_a_person_does(
    judge: dict[str, Any] | None, *, waits_for_person: bool
) -> None:
    looked_at = at_stage("■■■|■", 3, canary(steps=["5%", "50%"], judge=judge), **FIRST)
    assert ("; 'rollway promote web' continues" in EVALUATOR.evaluate_one(looked_at, NOW).reason) is waits_for_person


def frozen(**rollout: Any) -> Deployment:
    return replace(at_stage("■■■|■", 3, JUDGED, **rollout), hold=FROZEN)


def test_harm_goes_back_in_a_freeze_too_for_what_leads_out_of_trouble_waits_for_nobody() -> None:
    decision = cycle(frozen(**FIRST, evidence=(HARM,)), NOW)
    assert (decision.verdict, decision.to) == (Verdict.GIVE_UP, ROLLING_BACK)
    assert decision.reason.startswith("failures: canary 80 % (40 of 50), control none of 950")


def test_until_then_a_frozen_canary_that_has_requests_is_looked_at_once_a_second() -> None:
    held = EVALUATOR.evaluate_one(frozen(**FIRST), NOW)
    assert (held.reason, held.recheck_at, held.clock_stopped) == (FROZEN.reason, SECOND_LATER, True)
    assert EVALUATOR.evaluate_one(frozen(), NOW).recheck_at == FROZEN.until, "it has none yet"
