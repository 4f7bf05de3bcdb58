"""How many answers a judge needs, as a plan says it: with so many it finds a canary good, and with one fewer not."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.judge.evidence import fold_interval
from domain.judge.judge import Found, judge, needed, still_needed
from domain.judge.judge_spec import Judge
from domain.model.answer_counts import Answers
from domain.model.canary import NOTHING_SEEN, Evidence
from domain.text.numbers import duration
from tests.support.pictures.pictures import NOW

SLOW = "41 that are not slow, which is later by {} than p95 of the control, known from 100 of its answers on"


@pytest.mark.parametrize(
    ("settings", "answers"),
    [
        ({}, 429),
        ({"errors": {"allowed": "5%"}, "refused": None, "redirected": None}, 100),  # those of at_least
        ({"errors": {"allowed": "0.1%"}}, 4303),
        ({"refused": {"allowed": "0.1%"}}, 4303),
        ({"redirected": {"allowed": "0.1%"}}, 4303),
        ({"chance_of_false_promotion": "1%"}, 606),
    ],
)
def test_with_so_many_answers_a_judge_finds_it_good_and_with_one_fewer_not(
    settings: dict[str, Any], answers: int
) -> None:
    rules = Judge.model_validate(settings)
    assert needed(rules) == f"it needs {answers:,} answers of the canary at each weight, if none fails on either side"
    assert found(rules, answers) is Found.GOOD
    assert found(rules, answers - 1) is Found.UNDECIDED


def found(rules: Judge, answers: int) -> Found:
    at = NOW + timedelta(seconds=40)
    told = Evidence(at, Answers(answers, begun=answers), Answers(9 * answers, begun=9 * answers), 1, 1)
    return judge(rules, fold_interval(NOTHING_SEEN, told, rules, NOW), NOW, at).finding


@pytest.mark.parametrize(("answers", "more"), [(100, 329), (428, 1), (429, 0)])
def test_on_the_way_it_says_how_many_more_make_it_good_and_when(answers: int, more: int) -> None:
    rules, at = Judge(), NOW + timedelta(seconds=40)
    told = Evidence(at, Answers(answers, begun=answers), Answers(9 * answers, begun=9 * answers), 1, 1)
    said = still_needed(rules, fold_interval(NOTHING_SEEN, told, rules, NOW), NOW, at)
    left = duration(timedelta(seconds=40 * more / answers))
    assert said == (f"about {more} more successful responses needed ({left} at this rate)" if more else "")
    assert found(rules, answers + more) is Found.GOOD


def test_while_some_are_under_way_beyond_its_share_it_says_what_it_takes_with_them() -> None:
    rules, at = Judge(), NOW + timedelta(seconds=40)
    fine = Evidence(at, Answers(1_000, begun=1_000), Answers(9_000, begun=9_000), 1, 1)
    waits = replace(fine, canary=Answers(1_000, begun=1_020), under_way=(20, 0))
    (more,) = (
        int(said.split()[1].replace(",", ""))
        for said in [still_needed(rules, fold_interval(NOTHING_SEEN, waits, rules, NOW), NOW, at)]
    )
    assert more > 2_000
    for answers, found in ((more, Found.GOOD), (more - 1, Found.UNDECIDED)):
        told = replace(waits, canary=Answers(1_000 + answers, begun=1_020 + answers))
        assert judge(rules, fold_interval(NOTHING_SEEN, told, rules, NOW), NOW, at).finding is found


@pytest.mark.parametrize("later", ["20%", "50ms"])
def test_of_slow_answers_it_says_what_is_called_slow(later: str) -> None:
    assert needed(Judge.model_validate({"slow": {"by_at_least": later}})).endswith(f"; {SLOW.format(later)}")
