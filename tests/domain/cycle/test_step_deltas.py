"""A chain of steps: folded it gives what each step saw, exactly as it would have been recorded whole."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.cycle.recording import inputs_as_json, inputs_json
from domain.cycle.step_deltas import (
    Chain,
    Inputs,
    KeptStep,
    begins_anew,
    changes_kept,
    changes_since,
    last_of_each,
)
from domain.model.deployment import Deployment
from domain.model.states import RouteStatus
from tests.support.pictures.pictures import NOW, deploying
from tests.support.pictures.simulation import world_of
from tests.support.pictures.snapshots import cases

ROLLOUT = UUID(int=1)
REAL = st.sampled_from(RouteStatus)


def whole(deployment: Deployment, seconds: int = 0) -> Any:
    return json.loads(inputs_json(deployment, NOW + timedelta(seconds=seconds)))


def recorded(seen: Sequence[Any]) -> list[Inputs]:
    """As steps are kept: the first whole, then what changed, where that can be said; a whole one now and then."""
    kept, since = [seen[0]], 0
    for before, now in pairwise(seen):
        changes = None if begins_anew(len(now["deployment"]["routes"]), since + 1) else changes_since(before, now)
        since = 0 if changes is None else since + 1
        kept.append(now if changes is None else changes)
    read: list[Inputs] = json.loads(json.dumps(kept))
    return read


def told(kept: Sequence[Inputs]) -> list[Inputs | None]:
    chain = Chain()
    return [chain.whole(ROLLOUT, number, inputs) for number, inputs in enumerate(kept, 1)]


def one_by_one(replicas: int) -> list[Any]:
    """What each step of a rollout saw."""
    world = world_of(deploying("■" * replicas + "|", replicas, 1, 1), stop_seconds=1)
    world.run(seconds=10 * replicas)
    steps = [look for look in world.looks if look.decision.deployment.rollout and look.decision.is_step]
    assert len(steps) >= replicas
    return [inputs_as_json(look.decision.deployment, look.at) for look in steps]


def size(kept: Sequence[Inputs]) -> int:
    return sum(len(json.dumps(inputs)) for inputs in kept)


@given(st.lists(cases(REAL), min_size=1, max_size=12))
def test_any_steps_come_out_as_they_would_have_been_recorded_whole(found: list[Any]) -> None:
    seen = [whole(case.deployment, seconds) for seconds, case in enumerate(found)]
    assert told(recorded(seen)) == seen


@given(st.data(), cases(REAL))
def test_any_replicas_that_come_go_and_change_are_folded(data: st.DataObject, case: Any) -> None:
    routes = case.deployment.routes
    left = data.draw(st.lists(st.sampled_from(routes), unique_by=lambda route: route.id)) if routes else []
    other = [replace(route, status=data.draw(REAL)) for route in left]
    new = [replace(route, id=UUID(int=route.id.int + 1000)) for route in left[:3]]
    later = replace(case.deployment, routes=tuple(sorted([*other, *new], key=lambda route: route.id)))
    before, now = whole(case.deployment), whole(later, 1)
    changes = changes_since(before, now)
    assert changes is not None
    assert told([before, changes]) == [before, now]
    assert changes_since(now, now) == {"changed": {"deployment": {}, "routes": {}, "gone": []}, "now": now["now"]}


def test_new_replicas_take_their_places_among_the_ids_that_are_there() -> None:
    four = deploying("■■|■■", 4)
    ids = [route.id for route in four.routes]
    some = replace(four, routes=tuple(route for route in four.routes if route.id in (ids[0], ids[2])))
    before, now = whole(some), whole(four, 1)
    changes = changes_since(before, now)
    assert changes is not None
    assert told([before, changes]) == [before, now]


def test_the_record_of_a_rollout_one_by_one_grows_with_its_replicas_and_not_with_their_square() -> None:
    small, large = one_by_one(60), one_by_one(240)
    assert told(recorded(large)) == large
    assert size(large) > 12 * size(small), "whole it grows with the square"
    assert size(recorded(large)) < 5 * size(recorded(small))
    assert size(recorded(large)) < size(large) / 12


def test_a_step_that_another_release_recorded_whole_is_built_on_or_left() -> None:
    first, second, *_ = (dict(inputs) for inputs in one_by_one(40))
    before = {**first, "deployment": {**first["deployment"], "last_autoscaled_at": None}}
    assert changes_since(before, second) is None, "it had a field that is there no more"
    routes = [{**route, "colour": "blue"} for route in first["deployment"]["routes"]]
    assert changes_since({**first, "deployment": {**first["deployment"], "routes": routes}}, second) is None
    older = {name: value for name, value in first["deployment"].items() if name not in ("autoscaling", "hold")}
    changes = changes_since({**first, "deployment": older}, second)
    assert changes is not None
    assert told([{**first, "deployment": older}, changes])[1] == second


def test_replicas_that_do_not_stand_in_the_order_of_their_ids_are_recorded_whole() -> None:
    first, second, *_ = one_by_one(40)
    second["deployment"]["routes"].reverse()
    assert changes_since(first, second) is None
    assert changes_since(second, first) is None


@pytest.mark.parametrize(
    ("replicas", "following", "anew"),
    [(33, 7, False), (33, 8, True), (64, 8, True), (80, 9, False), (80, 10, True), (800, 99, False), (800, 100, True)],
)
def test_after_eight_steps_or_one_for_each_eight_replicas_a_step_is_recorded_whole(
    replicas: int, following: int, *, anew: bool
) -> None:
    assert begins_anew(replicas, following) is anew


def test_a_step_is_kept_as_the_difference_until_enough_follow_a_whole_one() -> None:
    first, second, *_ = one_by_one(40)
    last = KeptStep(ROLLOUT, 12, first, 10)
    changes = changes_kept(last, second, 13)
    assert changes is not None
    assert b" " not in changes
    assert json.loads(changes) == changes_since(first, second)
    assert changes_kept(last, second, 17) is not None
    assert changes_kept(last, second, 18) is None
    second["deployment"]["routes"].reverse()
    assert changes_kept(last, second, 13) is None


def test_the_last_step_of_each_rollout_is_whole_where_its_chain_is() -> None:
    seen, other = one_by_one(40)[:4], UUID(int=2)
    kept = recorded(seen)
    chains = [
        KeptStep(ROLLOUT, 5, kept[0], 5),
        KeptStep(ROLLOUT, 6, kept[1], 5),
        KeptStep(ROLLOUT, 7, kept[2], 5),
        KeptStep(other, 5, kept[0], 5),
        KeptStep(other, 7, kept[2], 5),
    ]
    assert last_of_each(chains) == {ROLLOUT: KeptStep(ROLLOUT, 7, seen[2], 5)}, "of the other one a step is missing"
    assert last_of_each([]) == {}


def test_a_rollout_that_begins_or_ends_between_two_steps_is_told_whole() -> None:
    first, second, *_ = one_by_one(40)
    resting = {**first, "deployment": {**first["deployment"], "rollout": None}}
    for before, now in ((resting, second), (second, resting)):
        changes = changes_since(before, now)
        assert changes is not None
        assert changes["changed"]["deployment"]["rollout"] == now["deployment"]["rollout"]
        assert "rollout" not in changes["changed"]
        assert told([before, changes]) == [before, now]


def test_of_a_rollout_that_goes_on_the_changed_fields_are_told() -> None:
    first, second, *_ = one_by_one(40)
    changes = changes_since(first, second)
    assert changes is not None
    assert changes["changed"]["rollout"].keys() < second["deployment"]["rollout"].keys()
    assert not changes["changed"]["deployment"].keys() & {"rollout", "routes"}


@pytest.mark.parametrize(
    "written",
    [
        {"changed": {"deployment": {}, "routes": {}}},  # without those that are gone
        {"changed": {"deployment": {}, "routes": {}, "gone": ["nobody"]}},
        {"changed": {"deployment": {}, "routes": None, "gone": []}},
        {"changed": {"deployment": {}, "routes": [], "gone": []}},
        {"changed": {"deployment": [1], "routes": {}, "gone": []}},
        {"deployment": {"routes": [{}]}},
        {},
    ],
)
def test_what_somebody_wrote_by_hand_is_no_step_and_nothing_builds_on_it(written: Any) -> None:
    first, second, *_ = one_by_one(40)
    chain = Chain()
    assert chain.whole(ROLLOUT, 1, first) == first
    assert chain.whole(ROLLOUT, 2, written) is None
    changes = changes_since(first, second)
    assert changes is not None
    assert chain.whole(ROLLOUT, 3, changes) is None
    assert chain.whole(ROLLOUT, 4, second) == second


@pytest.mark.parametrize("torn", ["missing", "altered", "of another rollout"])
def test_nobody_tells_what_a_step_saw_that_builds_on_a_torn_one(torn: str) -> None:
    seen = one_by_one(80)[:24]
    kept, chain, number = recorded(seen), Chain(), 5
    found: list[Inputs | None] = []
    for step, inputs in enumerate(kept, 1):
        if step == number and torn == "missing":
            found.append(None)
        elif step == number and torn == "altered":
            found.append(chain.whole(ROLLOUT, step, {"changed": {"deployment": {}, "routes": None, "gone": []}}))
        else:
            of = UUID(int=2) if step == number and torn == "of another rollout" else ROLLOUT
            found.append(chain.whole(of, step, inputs))
    anew = next(step for step, inputs in enumerate(kept, 1) if step > number and "deployment" in inputs)
    assert found[: number - 1] == seen[: number - 1]
    assert found[number - 1 : anew - 1] == [None] * (anew - number)
    assert found[anew - 1 :] == seen[anew - 1 :], "the next whole one begins anew"
