"""The judge of a canary: what numbers come to which verdict, and how it is said."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.recording import decision_json, inputs_json
from domain.cycle.rollout import is_judged
from domain.handlers.dispatch import HANDLERS, replay_step
from domain.judge.judge import Found, Judged, judge
from domain.judge.judge_spec import Errors, Judge, Slow
from domain.model.answer_counts import FIRST_BYTE_MS, Answers
from domain.model.canary import Evidence
from domain.model.deployment import Deployment
from domain.model.states import Verdict
from domain.planning.wait_explanation import why
from domain.strategies.builtin import parse_policy
from tests.support.pictures.pictures import NOW, deploying
from tests.support.pictures.values_within import with_canary
from tests.support.worlds.folding import folded, slow_of

SINCE = NOW - timedelta(seconds=60)
BUCKETS = len(FIRST_BYTE_MS) + 1


def seen(
    canary: tuple[int, int] = (0, 0),
    control: tuple[int, int] = (0, 0),
    reporting: int = 1,
    live: int = 1,
    late: tuple[int, int] = (0, 0),
) -> Evidence:
    """Each side as (done, failed). `late`: how many first bytes of each side took two seconds; the others 1 ms."""
    new, old = (
        Answers(*given, _first_byte(given[0], slow), begun=given[0])
        for given, slow in zip((canary, control), late, strict=True)
    )
    return Evidence(NOW, new, old, reporting, live)


def _first_byte(done: int, slow: int) -> tuple[int, ...]:
    late = FIRST_BYTE_MS.index(2_000)
    return tuple(slow if place == late else done - slow if place == 0 else 0 for place in range(BUCKETS))


def found(settings: Judge, told: Iterable[Evidence], since: datetime = SINCE) -> Judged:
    return judge(settings, folded(settings, told, since), since, NOW)


ONLY_ERRORS = Judge(errors=Errors(worse_than="1x"), refused=None, redirected=None)
AT_ONCE = Slow(warm_up="0s")


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        # nothing is no evidence, and neither is one side alone
        ([], Found.UNDECIDED),
        ([seen((0, 0), (5000, 40))], Found.UNDECIDED),
        ([seen((50, 50))], Found.UNDECIDED),
        # three canary answers that all fail are enough beside a control without failures
        ([seen((1, 1), (19, 0))] * 2, Found.UNDECIDED),
        ([seen((1, 1), (19, 0))] * 3, Found.HARM),
        # errors that hit both alike are nobody's fault
        ([seen((50, 15), (950, 285))] * 20, Found.GOOD),
        # 354 clean answers for 1 % and a chance of 5 %, fewer where the control fails more
        ([seen((353, 0), (0, 0))], Found.UNDECIDED),
        ([seen((1000, 0), (0, 0))], Found.GOOD),
        ([seen((1000, 30), (19_000, 570))], Found.GOOD),
        ([seen((1000, 60), (19_000, 570))], Found.HARM),
    ],
)
def test_the_verdict_on_errors(evidence: list[Evidence], verdict: Found) -> None:
    assert found(ONLY_ERRORS, evidence).finding is verdict


def test_the_sentence_has_the_numbers() -> None:
    evidence = [seen((206, 4), (3915, 6)), seen((206, 5), (3915, 5))]
    assert found(ONLY_ERRORS, evidence).sentence == (
        "failures: canary 2.2 % (9 of 412), control 0.14 % (11 of 7,830), 16 times as often, "
        "worse (chance below 1 in 100,000 if it failed no more often than allowed)"
    )


@pytest.mark.parametrize(
    ("evidence", "said"),
    [
        ([], "no proxy has told yet what it answered"),
        ([seen(reporting=0, live=2)], "no live proxy tells what it answers"),
        ([seen(reporting=0, live=0)], "no live proxy tells what it answers"),
        ([seen((10, 0), (90, 0), 3, 4)], "3 of 4 proxies report; 10 of at least 100 requests"),
        ([seen((10, 0), (90, 0))], "failures: none of 10, not decided; 10 of at least 100 requests"),
    ],
)
def test_what_is_missing_is_said(evidence: list[Evidence], said: str) -> None:
    verdict = found(ONLY_ERRORS, evidence)
    assert said in f"{verdict.sentence}; {verdict.missing}"


def test_a_weight_needs_its_own_evidence_and_its_own_time() -> None:
    before = replace(seen((1000, 0), (9000, 0)), at=SINCE)
    assert found(ONLY_ERRORS, [before]).finding is Found.UNDECIDED
    assert found(ONLY_ERRORS, [before, seen((1000, 0))]).finding is Found.GOOD
    early = found(ONLY_ERRORS, [seen((1000, 0))], NOW - timedelta(seconds=5))
    assert (early.finding, early.missing) == (Found.UNDECIDED, "5 of at least 30 s")
    harmful = [replace(seen((10, 10), (90, 0)), at=SINCE), seen((1000, 0))]
    assert found(ONLY_ERRORS, harmful).finding is Found.HARM, "harm at an earlier weight is harm"


def test_slow_first_bytes_are_measured_by_what_the_control_did_before() -> None:
    settings = Judge(errors=None, slow=AT_ONCE)
    usual = seen((50, 0), (950, 0), late=(0, 10))
    worse = seen((50, 0), (950, 0), late=(25, 10))
    assert found(settings, [usual] * 20).finding is Found.GOOD
    assert found(settings, [usual, worse, worse]).finding is Found.HARM
    assert found(settings, [usual, worse, worse]).sentence.startswith(
        "slow answers: canary 50 % (50 of 100), control 1.1 % (20 of 1,900), 48 times as often, worse"
    )
    # the first interval shows what is slow, and is not judged by it itself
    assert [counts.canary for counts in slow_of([worse, worse], AT_ONCE)] == [0, 50]
    # an answer that takes a minute and begins after 50 ms is a fast one: only first bytes are looked at
    both = Judge(slow=AT_ONCE)
    assert found(both, [usual] * 20).finding is Found.GOOD


def at_weight(spec: dict[str, Any], evidence: list[Evidence], seconds: float = 60) -> Deployment:
    policy = parse_policy({"strategy": "canary", "spec": {"steps": ["5%", "50%"], "judge": spec}})
    rollout = {"stage": 1, "weight": 500, "weight_known_at": NOW - timedelta(seconds=seconds)}
    return deploying("■■■|■", policy=policy, rollout={**rollout, "evidence": tuple(evidence)})


@pytest.mark.parametrize(
    ("spec", "evidence", "seconds", "verdict", "said"),
    [
        ({}, [seen((10, 10), (90, 0))], 60, Verdict.GIVE_UP, "failures: canary 100 % (10 of 10)"),
        ({}, [seen((10, 0), (90, 0))], 60, Verdict.SKIPPED, "10 of at least 100 requests"),
        ({}, [seen((1000, 0), (90, 0))], 60, Verdict.NEED_RETRY, "the canary gets 33.33 %"),
        (
            {},
            [],
            1800,
            Verdict.SKIPPED,
            "the canary has 5 % of the requests, undecided after 30 min; no proxy has told yet",
        ),
        ({"if_undecided": "abort"}, [], 1800, Verdict.GIVE_UP, "undecided after 30 min"),
        ({"if_undecided": "promote"}, [], 1800, Verdict.NEED_RETRY, "the canary gets 33.33 %"),
        (
            {"dry_run": True},
            [seen((10, 10), (90, 0))],
            60,
            Verdict.SKIPPED,
            "on a dry run, finds: harm, failures: canary 100 % (10 of 10)",
        ),
    ],
)
def test_what_a_verdict_leads_to(
    spec: dict[str, Any], evidence: list[Evidence], seconds: float, verdict: Verdict, said: str
) -> None:
    deployment = at_weight(spec, evidence, seconds)
    (handler,) = (known for known in HANDLERS.values() if known.name == "deploying_provisioning")
    (decision,) = handler.execute([deployment], NOW).decisions
    assert (decision.verdict, said in decision.reason) == (verdict, True), decision.reason
    replayed = replay_step(json.loads(inputs_json(deployment, NOW)), "deploying_provisioning")
    assert replayed == json.loads(decision_json(decision)), "the same numbers to the last digit"


def test_a_judge_is_waited_for_and_not_a_person() -> None:
    told = why(at_weight({}, [seen((10, 0), (90, 0))]), NOW)
    assert (str(told.waits_for), told.left_seconds) == ("judge", 1740)
    assert told.then == "it waits for approval: undecided after 30 min"
    assert told.brief == f"web waits: the canary has 5 % of the requests; in 29 min {told.then}"
    assert told.evidence[0] == "failures, refusals and redirections: none of 10, not decided"
    assert all(told.sentence.count(each) == 1 for each in ("none of 10", "5 % of", "successful responses"))
    assert str(why(at_weight({}, [], 1800), NOW).waits_for) == "person"
    rollout = at_weight({}, []).rollout
    assert rollout
    looks = {seconds: EVALUATOR.evaluate_one(at_weight({}, [], seconds), NOW).waits for seconds in (29, 30, 60)}
    assert {seconds: waits and (str(waits.kind), waits.until) for seconds, waits in looks.items()} == {
        29: ("time", NOW + timedelta(seconds=1)),  # before that no judge may decide
        30: ("judge", NOW + timedelta(seconds=1770)),
        60: ("judge", NOW + timedelta(seconds=1740)),
    }
    assert is_judged(rollout)
    assert not is_judged(with_canary(rollout, weight=None))
