"""Adding a strategy is one file (domain/strategies/recreate.py) and one line in a registry; nothing else changes."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.cycle.evaluator import EVALUATOR, DeploymentStrategyEvaluator, contained
from domain.handlers.dispatch import cycle
from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment, Hold
from domain.model.policy import StrategySpec, UnreadableSpec
from domain.model.states import Verdict
from domain.steering.verbs import abort
from domain.strategies.builtin import STRATEGIES, UNKNOWN, parse_policy
from domain.strategies.recreate import RecreateStrategy
from domain.text.errors import InvalidInputError
from tests.support.people.people import asking
from tests.support.pictures.pictures import NOW, ROLLING_BACK, deploying, drawn_changes, happens, rolling_update
from tests.support.pictures.policies import canary
from tests.support.pictures.values_within import canary_of

BEFORE = {name: strategy for name, strategy in STRATEGIES.items() if name != "recreate"}
AFTER = {**BEFORE, "recreate": RecreateStrategy()}


def test_a_new_strategy_is_one_file_and_one_registry_line() -> None:
    with pytest.raises(InvalidInputError, match="one of blue_green, canary, rolling_update, not 'recreate'"):
        parse_policy({"strategy": "recreate"}, BEFORE)
    policy = parse_policy({"strategy": "recreate"}, AFTER)
    deployment = deploying("■■■|", policy=policy)
    assert DeploymentStrategyEvaluator(BEFORE).strategy_of(policy) is UNKNOWN
    evaluator = DeploymentStrategyEvaluator(AFTER)
    assert happens(deployment, evaluator.evaluate_one(deployment, NOW)) == "drain ■■■"
    assert evaluator.budget(deployment).ceiling == 3


def test_its_policy_is_validated_like_any_other() -> None:
    with pytest.raises(InvalidInputError, match=r"policy\.spec\.max_surge"):
        parse_policy({"strategy": "recreate", "spec": {"max_surge": 1}}, AFTER)
    with pytest.raises(InvalidInputError, match=f"one of {', '.join(sorted(AFTER))}, not 'recreated'"):
        parse_policy({"strategy": "recreated"}, AFTER)


def test_each_rollout_of_a_batch_goes_to_its_own_strategy() -> None:
    recreate = deploying("■■■|", policy=parse_policy({"strategy": "recreate"}, AFTER))
    rolling = replace(deploying("■■■|", policy=rolling_update(1, 0)), id=UUID(int=5))
    broken = replace(recreate, id=UUID(int=6), deploying_revision_id=None)
    summary = contained(DeploymentStrategyEvaluator(AFTER).evaluate_one, [recreate, rolling, broken], NOW)
    assert happens(recreate, summary.assignments[recreate.id]) == "drain ■■■"
    assert happens(rolling, summary.assignments[rolling.id]) == "create 1"
    assert set(summary.errors) == {broken.id}


def test_when_it_is_removed_again_or_its_settings_are_no_longer_known_the_way_back_stays_open() -> None:
    unreadable = UnreadableSpec(stored={"max_surge": 1})
    for policy in (replace(rolling_update(), strategy="gone"), replace(rolling_update(), spec=unreadable)):
        forward = deploying("■■■|◇", policy=policy)
        held = replace(forward, hold=Hold("held by the freeze f", NOW + timedelta(hours=1)))
        assert EVALUATOR.evaluate_one(held, NOW).reason == "held by the freeze f"
        assert cycle(forward, NOW).verdict is Verdict.ERROR
        back = cycle(replace(forward, status=ROLLING_BACK), NOW)
        assert (back.verdict, drawn_changes(forward, back.changes)) == (Verdict.NEED_RETRY, "drain ◇")


@pytest.mark.parametrize("spec", [UnreadableSpec(stored={}), canary().spec])
def test_one_that_has_a_weight_loses_it_on_the_way_back_though_this_release_cannot_read_it(spec: StrategySpec) -> None:
    policy = replace(canary(), strategy="gone", spec=spec)
    forward = deploying("■■|■■", 4, policy=policy, rollout={"stage": 1, "weight": 7500, "weight_known_at": NOW})
    back = abort(forward, asking(forward, NOW)).deployment
    assert back.rollout is not None
    assert canary_of(back.rollout).weight == 5000, "the old side can answer no more than that yet"
    assert happens(back, EVALUATOR.evaluate_back(back, NOW)) == "create 1"


class _Straight(RecreateStrategy):
    """Somebody's own, which goes back in one step."""

    def go_back(self, deployment: Deployment, spec: Any, target: UUID, now: datetime) -> Decision:  # noqa: ARG002
        new = [route.id for route in deployment.active_routes if route.revision_id != target]
        return Decision.moved("all at once", RouteChanges.drain(new))


def test_a_strategy_may_have_a_way_back_of_its_own() -> None:
    policy = parse_policy({"strategy": "recreate"}, AFTER)
    back = deploying("■|■■", 3, policy=policy, status=ROLLING_BACK)
    straight = DeploymentStrategyEvaluator({"recreate": _Straight()})
    assert happens(back, straight.evaluate_back(back, NOW)) == "drain ■■"
