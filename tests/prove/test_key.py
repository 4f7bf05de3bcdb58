"""A key merges only what decides alike."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.support.pictures.pictures import NOW, deploying, rolling_update
from tools.prove.key import FAR, key_of
from tools.prove.laws.pairs import first_unlike_pair
from tools.prove.state import Left, State

PAIRS = 2_000


def test_from_states_with_equal_keys_the_same_follows() -> None:
    assert first_unlike_pair(seed=0, pairs=PAIRS) is None


def state_of(picture: str, **changed: Any) -> State:
    deployment = deploying(picture, policy=rolling_update(1, 1), **changed)
    return State(deployment, NOW, NOW, rolling_update(1, 1), Left(1, 1, 1))


def different() -> Iterator[tuple[State, State]]:
    yield state_of("■■|◇"), state_of("■■|■")
    yield state_of("■▲|"), state_of("▲■|")
    yield state_of("■▲|", status_for=29), state_of("■▲|", status_for=30)
    yield state_of("■|■"), replace(state_of("■|■"), due_at=None)
    yield state_of("■|■"), state_of("■|■", paused_at=NOW)
    yield state_of("■|■"), state_of("■|■", rollout={"failed_routes": 1})
    yield state_of("■|■"), state_of("■|■", rollout={"deadline": NOW})
    yield state_of("■|■"), state_of("■|■", rollout={"desired_at_start": 1})
    yield state_of("▫|■"), replace(state_of("▫|■"), now=NOW + timedelta(seconds=5))


@pytest.mark.parametrize(("state", "other"), list(different()))
def test_what_decides_differently_has_another_key(state: State, other: State) -> None:
    assert key_of(state) != key_of(other)


def test_a_limit_that_is_neither_far_nor_passed_is_refused() -> None:
    near = state_of("■|■", rollout={"deadline": NOW + timedelta(seconds=FAR - 1)})
    with pytest.raises(ValueError, match="neither far nor passed"):
        key_of(near)
