"""A canary judged by its answers to copies of requests, before its first weight."""

from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.rollout import is_judged, judging_of
from domain.judge.judge import Judging
from domain.judge.judge_spec import Judge
from domain.model.answer_counts import Answers, Copies
from domain.model.canary import NOTHING_SEEN, CanaryState, Evidence
from domain.model.decision import Decision
from domain.model.deployment import Rollout
from domain.model.states import Verdict
from domain.strategies.builtin import STRATEGIES, parse_policy
from tests.support.pictures.pictures import NOW, deploying

KNOWN_AT = NOW - timedelta(seconds=30)


def told(done: int, failed: int, old_failed: int = 0, **when: Any) -> Evidence:
    """Copies that were answered, and what the old revision failed meanwhile."""
    given = {"at": NOW, "copies": Copies(done, failed), "old_failed": old_failed, **when}
    return Evidence(canary=Answers(), control=Answers(), reporting=1, live=1, **given)


def looked_at(judge: dict[str, Any] | None, *evidence: Evidence, mirror: str | None, **rollout: Any) -> Decision:
    spec = {"mirror": mirror, "steps": ["5%", "50%"], "judge": judge, "replicas": 1}
    policy = parse_policy({"strategy": "canary", "spec": spec})
    found = {"stage": 1, "weight": 0, "weight_known_at": KNOWN_AT, "evidence": evidence, **rollout}
    deployment = deploying("■■■|■", policy=policy, rollout=found)
    return STRATEGIES["canary"].evaluate_cycle(deployment, policy.spec, NOW)


def decided(
    judge: dict[str, Any] | None, *evidence: Evidence, mirror: str | None = "10%", **rollout: Any
) -> tuple[Verdict, str]:
    decision = looked_at(judge, *evidence, mirror=mirror, **rollout)
    return decision.verdict, decision.reason


def test_while_copies_are_answered_it_is_looked_at_once_a_second() -> None:
    assert looked_at({}, told(20, 1), mirror="10%").recheck_at == NOW + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("judge", "evidence", "verdict", "said"),
    [
        # three failed copies of a tenth are enough beside an old revision that does not fail
        ({}, [told(20, 1)], Verdict.SKIPPED, "; 1 of 20 answered copies failed"),
        (
            {},
            [told(20, 4)],
            Verdict.GIVE_UP,
            "4 of 20 answered copies failed, and 0 of all requests, worse (chance below",
        ),
        # what the old revision fails speaks for it, all of it
        ({}, [told(20, 4, 40)], Verdict.SKIPPED, "; 4 of 20 answered copies failed"),
        ({}, [told(20, 4, 4)], Verdict.SKIPPED, "; 4 of 20 answered copies failed"),
        # half of the chance is for what comes after: this would do for the whole of it
        ({}, [told(20, 4, 1)], Verdict.SKIPPED, "; 4 of 20 answered copies failed"),
        # what came before every proxy knew is not looked at
        ({}, [told(20, 20, at=KNOWN_AT)], Verdict.SKIPPED, "no proxy has told yet"),
        # without a judge for errors, or on a dry run, it is said and decides nothing
        (None, [told(20, 20)], Verdict.SKIPPED, "; 20 of 20 answered copies failed"),
        ({"errors": None, "slow": {}}, [told(20, 20)], Verdict.SKIPPED, "; 20 of 20 answered copies failed"),
        (
            {"dry_run": True},
            [told(20, 20)],
            Verdict.SKIPPED,
            "dry run, finds: harm, 20 of 20 answered copies failed",
        ),
    ],
)
def test_harm_that_copies_show(
    judge: dict[str, Any] | None, evidence: list[Evidence], verdict: Verdict, said: str
) -> None:
    found, reason = decided(judge, *evidence)
    assert (found, said in reason) == (verdict, True), reason


def test_copies_are_no_evidence_at_a_weight_and_leave_less_of_the_chance() -> None:
    at_weight: dict[str, Any] = {"stage": 2, "weight": 5000}
    assert decided({}, told(20, 20), **at_weight)[0] is Verdict.SKIPPED
    seen = Evidence(NOW, Answers(3, 3, begun=3), Answers(65, 0, begun=65), 1, 1)
    assert decided({}, seen, **at_weight)[0] is Verdict.SKIPPED
    assert decided({}, seen, mirror=None, **at_weight)[0] is Verdict.GIVE_UP


def test_only_before_the_first_weight_copies_add_to_what_is_seen() -> None:
    judging = judging_of(parse_policy({"strategy": "canary", "spec": {"mirror": "10%", "steps": ["5%"], "judge": {}}}))
    assert judging
    for stage, weight, adds in ((1, 0, True), (2, 500, False)):
        seen = judging.fold_interval(CanaryState(stage, weight, KNOWN_AT), told(20, 20))
        assert (seen.copied != NOTHING_SEEN.copied) is adds


def test_what_proxies_count_is_looked_at_while_copies_are_answered() -> None:
    policy = parse_policy({"strategy": "canary", "spec": {"mirror": "10%", "steps": ["5%"]}})
    stages = [{}, {"stage": 1}, {"stage": 2, "weight": 500}]
    rollouts = [deploying("■■■|■", policy=policy, rollout={"weight": 0, **stage}).rollout for stage in stages]
    assert [isinstance(rollout, Rollout) and is_judged(rollout) for rollout in rollouts] == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("canary", "by_judge", "by_copies"),
    [
        (None, False, False),
        (CanaryState(3, None), False, False),
        (CanaryState(0, 0), False, False),
        (CanaryState(1, 0), False, True),
        (CanaryState(1, 500), True, False),
    ],
)
def test_answers_are_looked_at_for_a_judge_at_a_weight_and_for_copies_before_the_first(
    canary: CanaryState | None, *, by_judge: bool, by_copies: bool
) -> None:
    assert Judging(Judge()).is_on(canary) is by_judge
    assert Judging(None, 1000).is_on(canary) is by_copies
    assert Judging(Judge(), 1000).is_on(canary) is (by_judge or by_copies)
    assert not Judging(None).is_on(canary)


def test_only_a_judge_compares_with_a_fresh_baseline() -> None:
    settings = [None, Judge(), Judge(baseline="fresh")]
    assert [Judging(each).has_baseline for each in settings] == [False, False, True]
