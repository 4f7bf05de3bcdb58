"""Adding a strategy is one file (recreate_example.py) and one line in a registry; nothing else changes."""

from dataclasses import replace

import pytest

from domain.errors import InvalidInputError
from domain.evaluator import DeploymentStrategyEvaluator
from domain.strategies import STRATEGIES, parse_policy
from tests.domain.pictures import NOW, deploying, happens, rolling_update
from tests.domain.recreate_example import RecreateStrategy
from tests.domain.simulation import all_started, changed

WITH_RECREATE = {**STRATEGIES, "recreate": RecreateStrategy()}


def test_a_new_strategy_is_one_file_and_one_registry_line() -> None:
    policy = parse_policy({"strategy": "recreate"}, WITH_RECREATE)
    evaluator = DeploymentStrategyEvaluator(WITH_RECREATE)
    deployment, film = deploying("■■■|", policy=policy), []
    for step in range(4):
        decision = evaluator.evaluate_one(deployment, NOW)
        film.append(happens(deployment, decision))
        routes = changed(deployment.routes, decision.changes, NOW, number_from=1000 * (step + 1))
        deployment = replace(deployment, routes=routes)
        if film[-1] == "wait":
            deployment = all_started(deployment, NOW)
    assert film == ["drain ■■■", "create 3", "wait", "completed"]
    assert evaluator.budget(deployment).ceiling == 3


def test_its_policy_is_validated_like_any_other() -> None:
    with pytest.raises(InvalidInputError, match=r"policy\.spec\.max_surge"):
        parse_policy({"strategy": "recreate", "spec": {"max_surge": 1}}, WITH_RECREATE)
    with pytest.raises(InvalidInputError, match=f"one of {', '.join(sorted(WITH_RECREATE))}, not 'recreated'"):
        parse_policy({"strategy": "recreated"}, WITH_RECREATE)


def test_each_rollout_of_a_batch_goes_to_its_own_strategy() -> None:
    recreate = deploying("■■■|", policy=parse_policy({"strategy": "recreate"}, WITH_RECREATE))
    rolling = replace(deploying("■■■|", policy=rolling_update(1, 0)), id=recreate.id.__class__(int=5))
    broken = replace(recreate, id=recreate.id.__class__(int=6), deploying_revision_id=None)
    summary = DeploymentStrategyEvaluator(WITH_RECREATE).evaluate([recreate, rolling, broken], NOW)
    assert happens(recreate, summary.assignments[recreate.id]) == "drain ■■■"
    assert happens(rolling, summary.assignments[rolling.id]) == "create 1"
    assert set(summary.errors) == {broken.id}
    assert (summary.merged_changes.created, len(summary.merged_changes.drain_route_ids)) == (1, 3)
