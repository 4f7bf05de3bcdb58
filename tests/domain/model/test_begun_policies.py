"""A rollout keeps the policy that it began with: it is stored, and read back as it is."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cycle.rollout import Begin, begin_rollout
from domain.strategies.builtin import STRATEGIES, parse_policy, stored_policy
from tests.support.pictures.pictures import NOW, ROLLOUT, V1, resting, rolling_update
from tests.support.pictures.policies import canary
from tests.support.pictures.specs import SPECS


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(st.data())
def test_whatever_begins_is_read_back_as_it_is(strategy: str, data: st.DataObject) -> None:
    policy = parse_policy({"strategy": strategy, "spec": data.draw(SPECS[strategy].arbitrary)})
    for is_undo in (False, True):
        rollout = begin_rollout(resting("■■■"), Begin(ROLLOUT, V1, policy, is_undo=is_undo), NOW).rollout
        assert rollout is not None
        assert stored_policy(json.loads(json.dumps(rollout.policy.as_json()))) == rollout.policy


@pytest.mark.parametrize(
    ("spec", "surge"),
    [
        ({}, 2),
        ({"undo_max_surge": "100%"}, "100%"),
        ({"undo_max_surge": 1}, 1),
        ({"undo_max_surge": 0, "max_unavailable": 1}, 0),
    ],
)
def test_the_undo_of_a_canary_is_a_rolling_update(spec: dict[str, Any], surge: int | str) -> None:
    policy = canary(steps=["5%"], max_surge=2, judge={"baseline": "fresh"}, min_ready_seconds=60, **spec)
    rollout = begin_rollout(resting("■■■"), Begin(ROLLOUT, V1, policy, is_undo=True), NOW).rollout
    assert rollout is not None
    left = {"undo_max_surge": spec.get("undo_max_surge")}
    assert rollout.policy == rolling_update(surge, spec.get("max_unavailable", 0), **left)
    assert rollout.canary is None
