"""What a canary's judge comes to at its present step: what is said, who ends the step, and when it looks again."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.model.answer_counts import Answers, Copies
from domain.model.canary import CanaryState, Evidence
from domain.model.decision import Decision, Waits, WaitsFor
from domain.strategies.budget import Buckets
from domain.strategies.canary.judge_step import (
    Judgement,
    cautions,
    for_a_look,
    for_proxies,
    judgement,
    looking,
    soonest,
    still_coming,
    waits_for_sides,
)
from domain.strategies.canary.steps import CanarySpec
from tests.support.pictures.pictures import NOW, V1, V2, rollout_of, routes_of
from tests.support.pictures.policies import canary
from tests.support.pictures.values_within import canary_of

SOON = NOW + timedelta(seconds=1)
MIRROR = {"mirror": "10%", "steps": ["5%"]}
NO_WORSE = Answers(10, begun=10), Answers(90, begun=90)
GOOD = Answers(1000, begun=1000), Answers(9000, begun=9000)
HARM = Answers(900, 900, begun=900), Answers(100, begun=100)


def seen(*sides: Answers, copies: tuple[int, int] = (0, 0)) -> Evidence:
    new, old = sides or (Answers(), Answers())
    return Evidence(NOW, new, old, 1, 1, Copies(*copies))


def at_a_step(
    spec: dict[str, Any], *evidence: Evidence, weight: int = 500, stage: int = 1, known_for: float | None = 60
) -> tuple[CanaryState, CanarySpec]:
    policy = canary(**spec)
    known_at = None if known_for is None else NOW - timedelta(seconds=known_for)
    its: dict[str, Any] = {"stage": stage, "weight": weight, "weight_known_at": known_at}
    spec_of: Any = policy.spec
    rollout = rollout_of(policy, **its, **({"evidence": evidence} if evidence else {}))
    return canary_of(rollout), spec_of


def judged(spec: dict[str, Any], *evidence: Evidence, **how: Any) -> Judgement:
    return judgement(*at_a_step(spec, *evidence, **how), NOW)


@pytest.mark.parametrize(
    ("spec", "how"),
    [
        ({"steps": ["5%"]}, {}),
        ({"steps": ["5%"], "judge": {}}, {"weight": 0}),
        ({"steps": ["5%"], "judge": {}}, {"weight": 0, "stage": 0}),
        (MIRROR, {"weight": 0, "stage": 0}),
        (MIRROR, {"weight": 500, "stage": 2}),
    ],
)
def test_without_a_judge_a_weight_or_copies_nothing_is_said(spec: dict[str, Any], how: dict[str, Any]) -> None:
    assert judged(spec, **how) == Judgement()


@pytest.mark.parametrize("judge", [None, {}])
def test_copies_that_failed_are_counted_and_only_a_judge_gives_up_by_them(judge: Any) -> None:
    spec = {**MIRROR, "judge": judge}
    few = judged(spec, seen(copies=(20, 1)), weight=0)
    assert few == Judgement("1 of 20 answered copies failed", next_at=SOON)
    many = judged(spec, seen(copies=(500, 400)), weight=0)
    assert (many.gives_up, many.harms, many.next_at) == (bool(judge is not None), bool(judge is not None), SOON)
    assert many.sentence.startswith("400 of 500 answered copies failed")


def test_on_a_dry_run_it_is_said_what_it_finds_and_it_decides_nothing() -> None:
    copies = judged({**MIRROR, "judge": {"dry_run": True}}, seen(copies=(500, 400)), weight=0)
    assert copies.sentence.startswith("its judge, on a dry run, finds: harm, 400 of 500 answered copies failed")
    answers = judged({"steps": ["5%"], "judge": {"dry_run": True}}, seen(*HARM))
    assert answers.sentence.startswith("its judge, on a dry run, finds: harm, failures: canary 100 %")
    for found in (copies, answers):
        assert found == Judgement(found.sentence, next_at=SOON)


UNDECIDED = "undecided after 1 min"


@pytest.mark.parametrize(
    ("then", "evidence", "known_for", "expected"),
    [
        ("hold", HARM, 60, {"gives_up": True, "harms": True}),
        ("hold", GOOD, 60, {"is_over": True}),
        ("hold", NO_WORSE, 60, {"undecided": UNDECIDED}),
        ("abort", NO_WORSE, 60, {"undecided": UNDECIDED, "gives_up": True}),
        ("promote", NO_WORSE, 60, {"undecided": UNDECIDED, "is_over": True}),
        ("hold", NO_WORSE, 59, {"decides": (-29, 1)}),
        ("abort", NO_WORSE, 10, {"decides": (20, 50)}),
        ("promote", NO_WORSE, None, {"decides": (30, 60)}),  # nobody knows the weight yet
    ],
)
def test_what_it_finds_at_a_weight_ends_the_step_or_not(
    then: str, evidence: tuple[Answers, Answers], known_for: float | None, expected: dict[str, Any]
) -> None:
    spec = {"steps": ["5%"], "judge": {"at_most": {"seconds": 60}, "if_undecided": then}}
    found = judged(spec, seen(*evidence), known_for=known_for)
    decides = tuple(NOW + timedelta(seconds=seconds) for seconds in expected.pop("decides", ()))
    assert found == Judgement(found.sentence, missing=found.missing, decides=decides, next_at=SOON, **expected)
    assert bool(found.sentence)
    assert bool(found.missing) == bool(decides)
    assert found.reason == (f"{UNDECIDED}: {found.sentence}" if "undecided" in expected else found.sentence)


def test_what_is_missing_is_said_with_what_would_find_it_good() -> None:
    found = judged({"steps": ["5%"], "judge": {}}, seen(*NO_WORSE))
    assert found.missing.startswith("10 of at least 100 requests; about 419 more successful responses needed (")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, []),
        (
            {"judge": {}},
            [
                (
                    "its judge says when it continues: at each weight after 30 s and 100 requests at the soonest; "
                    "undecided after 30 min it waits for a person"
                ),
                "before it finds it good enough it needs 429 answers",
            ],
        ),
        ({"judge": {"if_undecided": "promote", "at_most": {"seconds": 60}}}, ["undecided after 1 min it continues"]),
        (
            {"judge": {"if_undecided": "abort", "at_least": {"requests": 2000}}},
            ["2,000 requests at the soonest", "goes back"],
        ),
    ],
)
def test_a_plan_says_when_its_judge_decides(spec: dict[str, Any], said: list[str]) -> None:
    sentences = list(cautions(CanarySpec(**spec), 100))
    assert bool(sentences) == bool(said)
    assert all(any(words in sentence for sentence in sentences) for words in said)


@pytest.mark.parametrize(
    ("picture", "fresh", "words"),
    [
        ("|■◇▲", (0, 0), "1 of 4 canary replicas healthy, 1 starting, 1 unhealthy"),
        ("|■■", (1, 2), "2 of 4 canary replicas healthy, 0 starting, 0 unhealthy; 1 of 2 of its baseline"),
    ],
)
def test_who_is_still_to_come_is_counted(picture: str, fresh: tuple[int, int], words: str) -> None:
    buckets = Buckets.of(routes_of(picture, V1, V2), V2, NOW)
    assert still_coming(buckets, 4, *fresh) == words


def test_who_is_not_warm_yet_is_counted_too() -> None:
    buckets = Buckets.of(routes_of("|■■", V1, V2, status_for=5), V2, NOW, 10)
    assert still_coming(buckets, 4, 0, 0) == (
        "0 of 4 canary replicas healthy, 2 not for min_ready_seconds yet, 0 starting, 0 unhealthy"
    )


@pytest.mark.parametrize(
    ("over_in", "undecided", "words"),
    [
        (None, "", "the canary has 5 %"),
        (9.6, "", "the canary has 5 %, for 10 more s"),
        (None, UNDECIDED, f"the canary has 5 %, {UNDECIDED}"),
        (3, UNDECIDED, f"the canary has 5 %, for 3 more s, {UNDECIDED}"),
    ],
)
def test_the_state_of_a_canary_in_words(over_in: float | None, undecided: str, words: str) -> None:
    over_at = None if over_in is None else NOW + timedelta(seconds=over_in)
    assert looking("5 %", over_at, Judgement(undecided=undecided), NOW) == words


def at(*seconds: float | None) -> tuple[datetime | None, ...]:
    return tuple(None if each is None else NOW + timedelta(seconds=each) for each in seconds)


@pytest.mark.parametrize(
    ("over_in", "decides", "times", "kind", "until"),
    [
        (None, (), (), WaitsFor.PERSON, None),
        (None, (), (7,), WaitsFor.PERSON, None),
        (9, (), (9, None, 7), WaitsFor.TIME, 7),
        (None, (5, 60), (), WaitsFor.TIME, 5),
        (None, (0, 60), (), WaitsFor.JUDGE, 60),
        (None, (-5, 60), (7,), WaitsFor.JUDGE, 7),
    ],
)
def test_a_look_waits_for_a_person_for_its_time_or_for_the_judge(
    over_in: float | None, decides: tuple[float, ...], times: tuple[float | None, ...], kind: WaitsFor, until: float
) -> None:
    found = Judgement("so far", missing="more", decides=tuple(filter(None, at(*decides))))
    (over_at,), (ends_at,) = at(over_in), at(until)
    waits = for_a_look("looks on", over_at, found, at(*times), NOW)
    assert (waits.kind, waits.words, waits.until) == (kind, "looks on", ends_at)
    assert waits.evidence == ("so far", "more")
    assert for_a_look("looks on", over_at, Judgement(), at(*times), NOW).evidence == ()


def test_what_either_side_waits_for_is_waited_for() -> None:
    buckets = Buckets.of(routes_of("■|◇", V1, V2), V2, NOW)
    first, second = (Decision.wait(Waits(WaitsFor.DEVICE, words, buckets.starting)) for words in ("a", "b"))
    moved, done = Decision.moved("moves", first.changes, None), Decision.success("done")
    for sides, kind in (((done, first), WaitsFor.DEVICE), ((second, moved), WaitsFor.DEVICE)):
        waits = waits_for_sides("both", buckets, sides, 1, 0, NOW)
        assert (waits.kind, waits.words, waits.routes) == (kind, "both", buckets.starting)


def test_where_both_sides_are_complete_the_canary_is_waited_for_alone_until_it_is_warm() -> None:
    buckets = Buckets.of(routes_of("■■~|■■", V1, V2, status_for=4), V2, NOW, 10)
    done = Decision.success("done")
    waits = waits_for_sides("both", buckets, (done, done), 2, 10, NOW)
    assert (waits.kind, waits.routes, waits.words) == (WaitsFor.ROUTE, buckets.warming, "both")
    assert [(its.value, its.relation, its.limit) for its in waits.blocked] == [(4, "<", 10), (0, "<", 2), (3, ">", 2)]


def test_proxies_are_waited_for_by_the_weight_that_they_must_know() -> None:
    assert for_proxies(2500).words == "every live proxy must acknowledge 25 % for the canary"


@pytest.mark.parametrize(
    ("times", "first"), [((), None), ((None,), None), ((0, -1), None), ((0, 3, None, 2), 2), ((5,), 5)]
)
def test_of_times_the_first_that_is_still_to_come(times: tuple[float | None, ...], first: float | None) -> None:
    assert (soonest(at(*times), NOW),) == at(first)
