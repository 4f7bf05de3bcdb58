"""What is supposed of a deployment, drawn: what stands then, and what the next look decides."""

import random
from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.effects import turns_back
from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import NoRolloutError
from domain.handlers.dispatch import cycle
from domain.model.picture import picture
from domain.planning.plan_input import Subject
from domain.planning.replica_timings import Timings
from domain.planning.rollout_plan import plan
from domain.planning.what_if import Supposing, hypothetical
from domain.strategies.builtin import parse_policy
from domain.text.errors import InvalidInputError
from tests.support.pictures.pictures import NOW, READY, deploying, resting
from tests.support.pictures.policies import canary as canary_policy


@pytest.mark.parametrize(
    ("drawn", "supposing", "before", "turns", "why"),
    [
        ("■■|■", Supposing(), "■■|■", False, "creating 1 new (3 live + 1 ≤ 4), draining 1 (at least 2 of 3 stay)"),
        (
            "■■|■",
            Supposing(spec={"max_surge": 3}),
            "■■|■",
            False,
            "creating 2 new (3 live + 2 ≤ 6), draining 1 (at least 2 of 3 stay)",
        ),
        ("■■|■", Supposing(replicas=5), "■■|■", False, "creating 3 new (3 live + 3 ≤ 6)"),
        (
            "■■|◇",
            Supposing(failures=1),
            "■■|",
            False,
            "waiting: 1 start failed; the next one is tried in 2 s",
        ),
        (
            "■■|◇■",
            Supposing(failures=2),
            "■■|",
            False,
            "waiting: 2 starts failed in a row; the next one is tried in 4 s",
        ),
        ("■■|◇", Supposing(failures=3), "■■|", True, "3 new replicas failed, the limit is 3"),
        ("■■■|", Supposing(strategy="recreate"), "■■■|", False, "draining 3 old"),
        ("■■■|", Supposing(strategy="canary"), "■■■|", False, "creating 1 canary"),
        (
            "■■|■",
            Supposing(strategy="canary", spec={"steps": ["20%"]}),
            "■■|■",
            False,
            "creating 1 old",
        ),
    ],
)
def test_other_budgets_failures_counts_and_strategies_are_supposed(
    drawn: str,
    supposing: Supposing,
    before: str,
    turns: bool,  # noqa: FBT001  (a column of the table)
    why: str,
) -> None:
    deployment = hypothetical(deploying(drawn), supposing, NOW)
    decision = cycle(deployment, NOW)
    assert picture(deployment.routes, deployment.current_revision_id, deployment.deploying_revision_id) == before
    assert (turns_back(decision), decision.reason.partition("; last:")[0]) == (turns, why)


def test_another_strategy_has_weights_of_its_own() -> None:
    rolling = deploying("■■■|")
    canary = hypothetical(rolling, Supposing(strategy="canary", spec={"steps": ["20%", "40%"]}), NOW)
    foreseen = plan(Subject(canary), NOW, Timings((2.0,), (1.0,)), random.Random(7).random)
    assert [wave.why for wave in foreseen.waves if "of the requests" in wave.why] == [
        "the canary gets 20 % of the requests",
        "the canary gets 33.33 % of the requests, on the way to 40 %",
        "the canary gets 40 % of the requests",
    ]
    assert foreseen.ends_ready
    at_five = deploying("■■■|■", policy=canary_policy(steps=["5%"]), rollout={"stage": 1, "weight": 500})
    weighed = hypothetical(at_five, Supposing(strategy="recreate"), NOW)
    assert weighed.rollout is not None
    assert weighed.rollout.canary is None
    undone = hypothetical(deploying("■■■|", rollout={"is_undo": True}), Supposing(strategy="canary"), NOW)
    assert undone.rollout is not None
    assert undone.rollout.canary is None


def test_settings_that_make_no_sense_are_refused_as_in_a_policy() -> None:
    with pytest.raises(InvalidInputError, match="max_surge"):
        hypothetical(deploying("■■■|"), Supposing(spec={"max_surge": "many"}), NOW)


def test_outside_of_a_rollout_only_the_count_can_be_supposed() -> None:
    assert hypothetical(resting("■■■", status=READY), Supposing(replicas=4), NOW).desired_replicas == 4
    with pytest.raises(NoRolloutError):
        hypothetical(resting("■■■", status=READY), Supposing(failures=1), NOW)


def test_what_is_no_field_is_a_setting_of_the_strategy() -> None:
    given = {"replicas": 2, "max_surge": "50%", "strategy": "canary"}
    assert Supposing.of(given) == Supposing(replicas=2, strategy="canary", spec={"max_surge": "50%"})


@pytest.mark.parametrize(
    ("setting", "waits_for"), [({}, "person"), ({"judge": {"dry_run": True}}, "person"), ({"judge": {}}, "time")]
)
def test_a_canary_goes_on_by_itself_where_a_judge_decides(setting: dict[str, Any], waits_for: str) -> None:
    known = {"stage": 1, "weight": 500, "weight_known_at": NOW - timedelta(seconds=5)}
    policy = parse_policy({"strategy": "canary", "spec": {"steps": ["5%"], **setting}})
    waits = EVALUATOR.evaluate_one(deploying("■■■|■", policy=policy, rollout=known), NOW).waits
    assert waits is not None
    assert str(waits.kind) == waits_for


@pytest.mark.parametrize("name", ["replicas", "failures"])
@pytest.mark.parametrize("value", [-1, 1.5, "3", True, None])
def test_a_number_of_replicas_is_a_whole_number_from_0(name: str, value: object) -> None:
    with pytest.raises(InvalidInputError, match=f"{name}: must be a number of replicas, such as 3") as refused:
        Supposing.of({name: value})
    assert refused.value.detail == {"field": name}
    assert getattr(Supposing.of({name: 0}), name) == 0
