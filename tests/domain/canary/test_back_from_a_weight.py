"""The way back from a weight: what the canary keeps of the requests, who stays for it, and what people read of it."""

import re
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from domain.devices.room import DeviceRoom
from domain.handlers.dispatch import cycle
from domain.model.decision import WaitsFor
from domain.model.deployment import Deployment, StartFailures
from domain.model.policy import DeploymentPolicy
from domain.strategies.builtin import STRATEGIES, UNKNOWN
from domain.strategies.canary.rollback import at_once
from tests.support.pictures.pictures import NOW, ROLLING_BACK, V1, V2, deploying, drawn_changes
from tests.support.pictures.policies import canary

CANARY, PLAIN = STRATEGIES["canary"], canary(steps=["50%"])


def back(
    picture: str,
    n: int = 4,
    weight: int | None = 7500,
    policy: DeploymentPolicy = PLAIN,
    known_for: float | None = 9,
    **how: Any,
) -> Deployment:
    """On the way back. `known_for`: the seconds for which every live proxy has known the weight."""
    known_at = None if known_for is None else NOW - timedelta(seconds=known_for)
    its = {"stage": 1, "weight": weight, "weight_known_at": known_at}
    return deploying(picture, n, policy=policy, rollout=its, status=ROLLING_BACK, **how)


def spec_of(deployment: Deployment) -> Any:
    assert deployment.rollout
    return deployment.rollout.policy.spec


def turned(deployment: Deployment, *, now: bool = False) -> int | None:
    found = CANARY.turned_back(deployment, spec_of(deployment), at_once=now)
    assert found
    return found.weight


@pytest.mark.parametrize(
    ("picture", "weight", "kept"),
    [
        ("■■|■■■", 7500, 5000),
        ("■■■|■■", 5000, 2500),
        ("■■■■|■", 2500, 0),
        ("■■■■■|■", 2500, 0),
        ("■■▲◇|■■■", 7500, 5000),  # who is sick or starts answers nothing
        ("■|■", 7500, 5000),  # two are all that there are: half for each
        ("|■■■", 7500, 7500),
        ("|■■■", 10_000, 10_000),
        ("■|■■■■", 100, 100),  # it gets no more than before
        ("■|", 7500, 0),
        ("|", 7500, 0),
    ],
)
def test_the_canary_keeps_what_old_ones_cannot_answer_and_after_harm_nothing(
    picture: str, weight: int, kept: int
) -> None:
    deployment = back(picture, weight=weight)
    assert turned(deployment) == kept
    assert turned(deployment, now=True) == 0


def test_without_a_weight_nothing_is_kept() -> None:
    for weight in (None, 0):
        assert turned(back("■|■■■", weight=weight)) == turned(back("■|■■■", weight=weight), now=True) == weight


def test_a_weight_that_does_not_change_is_known_as_before() -> None:
    same, less = back("|■■■"), back("■■|■■■")
    for deployment, known_at in ((same, NOW - timedelta(seconds=9)), (less, None)):
        found = CANARY.turned_back(deployment, spec_of(deployment), at_once=False)
        assert found
        assert found.weight_known_at == known_at


@pytest.mark.parametrize(("picture", "weight"), [("■■|■■■", 5000), ("|■■■■", 9999), ("■■■■|■", 0), ("|", 0)])
def test_a_try_begins_with_what_old_ones_cannot_answer_and_not_with_all(picture: str, weight: int) -> None:
    begun = CANARY.begins_with(back(picture), spec_of(back(picture)))
    assert begun
    assert (begun.stage, begun.weight) == (0, weight)
    assert UNKNOWN.begins_with(back(picture), spec_of(back(picture))) is None


def test_harm_leads_back_without_a_stop_and_says_where_old_ones_are_too_few() -> None:
    two, whole = back("■■|■■■"), back("■■■■|■")
    budget = CANARY.budget_of(two, spec_of(two))
    assert at_once(back("■|■■■"), 7500, "harm", budget) == "harm; so 1 old replica at once answers what 4 should"
    assert at_once(two, 7500, "harm", budget) == "harm; so 2 old replicas at once answer what 4 should"
    assert at_once(whole, 7500, "harm", budget) == at_once(two, 0, "harm", budget) == "harm"


@pytest.mark.parametrize(
    ("picture", "weight", "known_for", "changes", "stage"),
    [
        ("■■|■■■", 7500, 9, "", 5000),
        ("■■■■|■", 7500, 9, "", 0),
        # as much as old ones cannot answer: converge, but who answers for the weight stays
        ("■■|■■■", 5000, 9, "drain ■", None),
        ("■■|■■", 5000, 9, "create 1", None),
        ("■■■|■", 2500, 9, "create 1", None),
        ("■■■|■■", 2500, 9, "drain ■", None),
        ("■■■▲|■", 2500, 9, "", None),
        # while a proxy does not know the weight nobody leaves
        ("■■|■■■", 5000, None, "", None),
        ("■■|■■", 5000, None, "create 1", None),
        # without a weight nobody is needed
        ("■■■■|■", 0, 9, "drain ■", None),
        ("■■■■|■", None, 9, "drain ■", None),
    ],
)
def test_one_step_back(picture: str, weight: int | None, known_for: float | None, changes: str, stage: int) -> None:
    deployment = back(picture, weight=weight, known_for=known_for, status_for=3)
    decision = CANARY.go_back(deployment, spec_of(deployment), V1, NOW)
    assert drawn_changes(deployment, decision.changes) == changes
    assert (decision.changes.stage and decision.changes.stage.weight) == stage
    if decision.changes.stage:
        assert decision.changes.stage.number == 1
        assert decision.recheck_at == NOW


def test_while_a_proxy_does_not_know_the_weight_old_ones_come_and_nobody_leaves() -> None:
    one_missing = canary(steps=["50%"], max_unavailable=1)
    for known_for, changes in ((9, "create 1, drain ■"), (None, "create 1")):
        deployment = back("■■|■■", weight=2500, policy=one_missing, known_for=known_for)
        assert drawn_changes(deployment, CANARY.go_back(deployment, spec_of(deployment), V1, NOW).changes) == changes


@pytest.mark.parametrize(
    ("picture", "changed", "again"),
    [
        ("■■|■■■", {}, None),
        ("■■▲|■■■", {}, 27),
        ("■■|■■■", {"start_failures": StartFailures(V1, 1, NOW)}, 2),
        ("■■▲|■■■", {"start_failures": StartFailures(V1, 1, NOW)}, 2),
    ],
)
def test_while_nobody_leaves_it_is_looked_at_again_when_time_allows_more(
    picture: str, changed: dict[str, Any], again: float | None
) -> None:
    deployment = back(picture, weight=5000, known_for=None, status_for=3, **changed)
    decision = CANARY.go_back(deployment, spec_of(deployment), V1, NOW)
    assert decision.waits
    assert decision.waits.kind is WaitsFor.PROXIES
    assert decision.recheck_at == (None if again is None else NOW + timedelta(seconds=again))


@pytest.mark.parametrize(
    ("picture", "known_for", "kind", "words", "again"),
    [
        ("■■■◇|■", 9, WaitsFor.ROUTE, "3 of 4 ready, 1 starting", None),
        ("■■■|■■", None, WaitsFor.PROXIES, "every live proxy must acknowledge 25 % for the canary", None),
        ("■■■▲|■", None, WaitsFor.ROUTE, "3 of 4 ready, 0 starting, 1 unhealthy", 27),
    ],
)
def test_where_nobody_can_leave_it_is_waited_for_what_comes(
    picture: str, known_for: float | None, kind: WaitsFor, words: str, again: float | None
) -> None:
    deployment = back(picture, weight=2500, known_for=known_for, status_for=3)
    decision = CANARY.go_back(deployment, spec_of(deployment), V1, NOW)
    assert decision.waits
    assert decision.waits.kind is kind
    assert decision.waits.words.startswith(words)
    assert decision.recheck_at == (None if again is None else NOW + timedelta(seconds=again))


@pytest.mark.parametrize(
    ("picture", "weight", "known_for", "changes"),
    [
        ("■■■|■■■", 5000, 9, "drain ■"),  # two are above the ceiling, and two are needed for a half
        ("■■■|■■■■", 5000, 9, "drain ■■"),
        ("■■■|■■■", 0, 9, "drain ■■"),
        ("■■■|■■■", None, 9, "drain ■■"),
        ("■■■|■■", 5000, 9, ""),
        ("■■■|■■■", 5000, None, ""),
        ("■|■", 5000, 9, "create 1"),
    ],
)
def test_in_a_pause_on_the_way_back_those_stay_whom_the_weight_needs(
    picture: str, weight: int | None, known_for: float | None, changes: str
) -> None:
    deployment = back(picture, 3, weight, known_for=known_for, paused_at=NOW)
    decision = CANARY.keep_whole(deployment, spec_of(deployment), NOW)
    assert drawn_changes(deployment, decision.changes) == changes


def test_in_a_pause_those_on_a_drained_host_leave_as_far_as_all_requests_allow() -> None:
    for weight, changes in ((None, "drain ▣"), (0, "")):
        deployment = back("▣■|■■", 3, weight, paused_at=NOW)
        assert drawn_changes(deployment, CANARY.keep_whole(deployment, spec_of(deployment), NOW).changes) == changes


def test_in_a_pause_where_nobody_would_leave_it_is_whole() -> None:
    deployment = back("■■■|■", 3, 2500, paused_at=NOW)
    decision = CANARY.keep_whole(deployment, spec_of(deployment), NOW)
    assert decision.waits
    assert decision.waits.words == "the held rollout is whole"


def test_in_a_pause_it_is_said_for_what_they_stay() -> None:
    deployment = back("■■■|■■■", 3, 5000, known_for=None, paused_at=NOW)
    decision = CANARY.keep_whole(deployment, spec_of(deployment), NOW)
    assert decision.waits
    assert (decision.waits.kind, decision.waits.words) == (
        WaitsFor.NOTHING,
        "who is left is needed for the canary's 50 %",
    )


NOW_INSTEAD = "; 'rollway abort web --now' takes them away at once, then"


@pytest.mark.parametrize(
    ("picture", "weight", "surge", "unavailable", "seconds", "words"),
    [
        (
            "■■|■■■■■■■■",
            5000,
            1,
            0,
            None,
            (
                "the canary keeps 50 % of the requests until 8 more are up, 1 at a time"
                f"{NOW_INSTEAD} 2 old replicas answer what 10 should"
            ),
        ),
        (
            "■|■■",
            500,
            3,
            0,
            20.0,
            (
                "the canary keeps 5 % of the requests until 9 more are up, 3 at a time, "
                "about 60 s as starts went of late"
                f"{NOW_INSTEAD} 1 old replica answers what 10 should"
            ),
        ),
        ("■■|■", None, 3, 0, 20.0, "2 old replicas answer what 10 should until 8 more are up, 3 at a time, about 60 s"),
        ("■|■", 0, 3, 1, 20.0, "1 old replica answers what 10 should until 8 more are up, 3 at a time, about 60 s"),
        (
            "■■|■",
            0,
            "100%",
            2,
            0.01,
            "2 old replicas answer what 10 should until 6 more are up, 10 at a time, about 1 s",
        ),
        ("■■■■■■■■■■|■", 500, 1, 0, 20.0, None),
        ("■■■■■■■■■|■", 500, 1, 1, 20.0, None),
        ("■■|", None, 1, 0, 20.0, None),  # there is nobody else
    ],
)
def test_who_answers_until_the_old_side_is_whole(
    picture: str, weight: int | None, surge: int | str, unavailable: int, seconds: float | None, words: str | None
) -> None:
    policy = canary(steps=["50%"], max_surge=surge, max_unavailable=unavailable)
    deployment = back(picture, 10, weight, policy)
    said = CANARY.answering(deployment, policy.spec, seconds)
    assert (said is None) == (words is None)
    assert (said or "").startswith(words or "")


def test_a_rollout_that_never_had_a_weight_has_none_to_keep() -> None:
    deployment = deploying("■■|■", 10, policy=PLAIN, status=ROLLING_BACK)
    assert deployment.rollout
    without = replace(deployment, rollout=replace(deployment.rollout, canary=None))
    said = CANARY.answering(without, PLAIN.spec, None)
    assert said == "2 old replicas answer what 10 should until 8 more are up, 1 at a time"


def test_where_no_device_is_free_one_comes_up_at_a_time() -> None:
    deployment = back("■|■■", 3, 5000, devices=DeviceRoom(free={V1: 0, V2: 0}))
    said = CANARY.answering(deployment, spec_of(deployment), 20.0)
    assert said
    assert "until 1 more are up, 1 at a time, about 20 s as" in said


@pytest.mark.parametrize("paused_at", [None, NOW])
def test_a_step_back_counts_those_that_leave_in_its_sentence(paused_at: datetime | None) -> None:
    pictures = ["".join(sides) for sides in product(("", "■", "■■", "■■■", "■■■▲"), "|", ("■", "■■", "■■■", "■■■■"))]
    steps = set()
    for picture, weight in product(pictures, (2500, 5000, 7500)):
        decision = cycle(back(picture, 3, weight, paused_at=paused_at), NOW)
        leave, said = len(decision.changes.drain_route_ids), re.search(r"draining (\d+)", decision.reason)
        assert leave == (int(said[1]) if said else 0), (picture, weight, decision.reason)
        steps.add(leave)
    assert steps >= {0, 1, 2, 3}
