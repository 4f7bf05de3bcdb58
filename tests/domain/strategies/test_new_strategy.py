"""Adding a strategy is one file (domain/strategies/recreate.py) and one line in a registry; nothing else changes."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from domain.cycle.evaluator import EVALUATOR, DeploymentStrategyEvaluator, contained
from domain.handlers.cycle import cycle
from domain.model.deployment import Verdict
from domain.model.hold import Hold
from domain.model.policy import UnreadableSpec
from domain.strategies import STRATEGIES, parse_policy
from domain.strategies.recreate import RecreateStrategy
from domain.words.errors import InvalidInputError
from tests.support.pictures.pictures import NOW, ROLLING_BACK, deploying, drawn_changes, happens, rolling_update

BEFORE = {name: strategy for name, strategy in STRATEGIES.items() if name != "recreate"}
AFTER = {**BEFORE, "recreate": RecreateStrategy()}


def test_a_new_strategy_is_one_file_and_one_registry_line() -> None:
    with pytest.raises(InvalidInputError, match="one of blue_green, canary, rolling_update, not 'recreate'"):
        parse_policy({"strategy": "recreate"}, BEFORE)
    policy = parse_policy({"strategy": "recreate"}, AFTER)
    deployment = deploying("■■■|", policy=policy)
    assert DeploymentStrategyEvaluator(BEFORE).strategy_of(policy) is None
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
