"""The small changes of a rollout: its sizes, its weights, its evidence, and what it is said to wait for."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.rollout import (
    NoRolloutError,
    guard_of,
    most_at_once,
    past_all_weights,
    resized,
    rollout_of,
    turned_back,
    unpaused,
    wait_in_words,
    weight_known,
    with_evidence,
)
from domain.cycle.transitions import Glimpse, Wait
from domain.devices.room import DeviceRoom
from domain.handlers.deploying import DeployingProvisioningHandler
from domain.model.canary import NOTHING_SEEN, CanaryState
from domain.model.deployment import Deployment, RouteCounts
from domain.model.policy import DeploymentPolicy
from domain.model.states import PREPARING
from domain.steering.verbs import scale
from domain.text.errors import WrongStateError
from tests.support.pictures.pictures import (
    NOW,
    READY,
    RECREATE,
    V2,
    blue_green,
    deploying,
    resting,
    rolling_back,
    rolling_update,
)
from tests.support.pictures.policies import canary

STEPS = canary(steps=["5%", "50%"])
AT_FIVE = deploying("■■■|■", policy=STEPS, rollout={"stage": 1, "weight": 500, "weight_known_at": NOW})
LATER = NOW + timedelta(minutes=5)
SEEN = replace(NOTHING_SEEN, requests=9)


def its_canary(deployment: Deployment) -> CanaryState:
    found = rollout_of(deployment, "ask").canary
    assert found is not None
    return found


def test_what_proxies_tell_is_kept_where_there_is_a_canary() -> None:
    rollout = rollout_of(AT_FIVE, "ask")
    judged = with_evidence(rollout, SEEN)
    assert judged.canary == replace(its_canary(AT_FIVE), evidence=SEEN)
    assert with_evidence(rollout, None) is rollout
    plain = rollout_of(deploying("■■|■"), "ask")
    assert with_evidence(plain, SEEN) is plain


def test_past_all_weights_none_is_left_and_a_promotion_is_used_up() -> None:
    asked = replace(rollout_of(AT_FIVE, "ask"), promote_requested=True)
    rest = past_all_weights(asked)
    assert rest is not None
    assert rest.canary is not None
    assert (rest.canary.weight, rest.canary.stage, rest.promote_requested) == (None, 1, False)
    assert past_all_weights(rest) is None
    assert past_all_weights(rollout_of(deploying("■■|■"), "ask")) is None


@pytest.mark.parametrize(
    ("deployment", "words"),
    [
        (deploying("■■|◇"), "waiting: 1 new starting; 0 of 3 ready"),
        (deploying("■■|◇", paused_at=NOW), "waiting: it is paused; 'rollway resume web' continues"),
        (deploying("■■■|"), ""),
        (deploying("■■■|", status=PREPARING), ""),  # hosts are waited for, and no strategy
        (
            deploying("■■■|", status=PREPARING, paused_at=NOW),
            "waiting: it is paused; 'rollway resume web' continues",
        ),
        (
            rolling_back("■■◇|"),
            "waiting: 2 of 3 ready, 1 starting, 0 unhealthy, 0 of other revisions; 3 live of at most 4",
        ),
    ],
)
def test_a_rollout_says_in_words_what_it_waits_for(deployment: Deployment, words: str) -> None:
    assert wait_in_words(deployment, NOW) == words


@pytest.mark.parametrize(
    ("deployment", "most"),
    [
        (resting("■■■", 3), 3),
        (deploying("■■■|", 3, 2, 1), 5),
        (deploying("■■■|", 3, policy=blue_green()), 6),
        (deploying("■■■|", 9, 1, 1, rollout={"desired_at_start": 3}), 9),
        (deploying("■■■|", 3, 1, 1, rollout={"desired_at_start": 3, "desired_with_revision": 7}), 8),
    ],
)
def test_no_decision_creates_more_than_are_wanted_or_fit(deployment: Deployment, most: int) -> None:
    assert most_at_once(deployment) == most


@pytest.mark.parametrize(
    ("sizes", "ceiling", "keep"),
    [
        ({"desired_at_start": 4}, 5, 3),
        ({"desired_at_start": 4, "desired_with_revision": 8}, 9, 3),
        ({"desired_at_start": 8, "desired_with_revision": 4}, 9, 3),
        ({"desired_at_start": 4, "desired_with_revision": 0}, 5, 0),
    ],
)
def test_the_guard_is_the_widest_of_the_ways_there_and_back(sizes: dict[str, int], ceiling: int, keep: int) -> None:
    guard = guard_of(deploying("■■■■|", 4, 1, 1, rollout=sizes))
    assert (guard.ceiling, guard.keep) == (ceiling, keep)


@pytest.mark.parametrize(
    ("policy", "devices", "keep"),
    [
        (rolling_update(1, 0), None, 4),
        (rolling_update(1, 0), DeviceRoom({V2: 0}), 3),  # in place, on a way back from a bad revision
        (rolling_update(1, 2), DeviceRoom({V2: 0}), 2),
        (RECREATE, DeviceRoom({V2: 0}), 0),
    ],
)
def test_the_guard_lets_one_be_missing_where_devices_may_be_short(
    policy: DeploymentPolicy, devices: DeviceRoom | None, keep: int
) -> None:
    assert guard_of(deploying("■■■■|", 4, policy=policy, devices=devices)).keep == keep


def test_a_size_with_the_rollout_leaves_with_its_revision_and_one_without_stays() -> None:
    alone = rollout_of(scale(deploying("■■|◇"), 5, with_rollout=True).deployment, "ask")
    assert (alone.desired_at_start, alone.desired_with_revision) == (3, 5)
    both = resized(deploying("■■|◇", rollout={"desired_with_revision": 4}), 5)
    assert (both.desired_at_start, both.desired_with_revision) == (5, None)


def test_a_size_with_the_rollout_is_refused_where_its_revision_leaves_or_there_is_none() -> None:
    with pytest.raises(WrongStateError, match="web is rolling back: the size of the new revision leaves with it") as no:
        scale(rolling_back("■■|■"), 5, with_rollout=True)
    assert no.value.detail == {"deployment": "web"}
    with pytest.raises(NoRolloutError, match="web is ready: there is no rollout to resize") as none:
        scale(resting("■■■", status=READY), 5, with_rollout=True)
    assert none.value.detail == {"deployment": "web"}


@pytest.mark.parametrize(
    ("before", "desired", "known_at"),
    [(0, 3, None), (0, 0, NOW), (3, 5, NOW), (3, 0, NOW)],
)
def test_the_time_of_a_weight_begins_again_where_there_was_nobody_to_answer(
    before: int, desired: int, known_at: object
) -> None:
    resized_one = scale(replace(AT_FIVE, desired_replicas=before), desired).deployment
    found = its_canary(resized_one)
    assert (found.stage, found.weight, found.weight_known_at) == (1, 500, known_at)


def test_past_its_weights_no_time_begins_again() -> None:
    passed = deploying("■■■|■", 0, policy=STEPS, rollout={"stage": 2, "weight": None, "weight_known_at": NOW})
    assert its_canary(scale(passed, 3).deployment).weight_known_at == NOW


@pytest.mark.parametrize(
    ("known_at", "paused_at", "moved_to"),
    [
        (NOW, NOW + timedelta(minutes=1), NOW + timedelta(minutes=4)),  # one minute counts before the pause
        (NOW + timedelta(minutes=2), NOW + timedelta(minutes=1), LATER),  # known within the pause: none counts
        (None, NOW, None),
        (NOW, None, NOW),  # it was not paused
    ],
)
def test_a_pause_does_not_count_as_time_of_a_weight(known_at: object, paused_at: object, moved_to: object) -> None:
    changed: dict[str, Any] = {"stage": 1, "weight": 500, "weight_known_at": known_at}
    goes_on = unpaused(deploying("■■■|■", policy=STEPS, rollout=changed, paused_at=paused_at), LATER)
    assert (goes_on.paused_at, its_canary(goes_on).weight_known_at) == (None, moved_to)


def test_proxies_know_a_weight_from_the_first_time_that_all_of_them_say_so() -> None:
    assert weight_known(AT_FIVE, LATER) is AT_FIVE
    new = deploying("■■■|■", policy=STEPS, rollout={"stage": 1, "weight": 500})
    assert its_canary(weight_known(new, LATER)).weight_known_at == LATER
    for nothing_to_know in (
        deploying("■■■|■", policy=STEPS, rollout={"stage": 2, "weight": None}),
        deploying("■■|■"),
        resting("■■■"),
    ):
        assert weight_known(nothing_to_know, LATER) is nothing_to_know


def test_turned_back_its_phase_begins_once_and_its_clocks_run() -> None:
    stopped = {"clock_stopped_at": NOW}
    turning = turned_back(deploying("■■|◇", paused_at=NOW, rollout=stopped, phase_attempts=3), LATER)
    assert (turning.phase_started_at, turning.paused_at, turning.phase_attempts) == (LATER, None, 0)
    assert rollout_of(turning, "ask").clock_stopped_at is None
    again = turned_back(rolling_back("■■|◇", phase_attempts=3), LATER)
    assert (again.phase_started_at, again.phase_attempts) == (NOW, 0)


@pytest.mark.parametrize(
    ("counts", "stands", "changed", "expected"),
    [
        (RouteCounts(1, 1, 0), False, {}, "waiting: 1 new starting; 1 of 3 ready"),
        (RouteCounts(1, 1, 0), True, {}, None),
        (RouteCounts(0, 1, 0), False, {}, None),
        (RouteCounts(1, 1, 1), False, {}, None),
        (RouteCounts(1, 1, 0), False, {"deadline": NOW}, None),
        (RouteCounts(1, 1, 0), False, {"failed_routes": 3}, None),
    ],
)
def test_a_glance_at_counts_tells_a_wait_that_no_limit_ends(
    counts: RouteCounts, *, stands: bool, changed: dict[str, Any], expected: str | None
) -> None:
    rollout = rollout_of(deploying("■|■◇", rollout=changed), "ask")
    wait = DeployingProvisioningHandler().glance(Glimpse(rollout, rollout.policy, 3, counts, stands), NOW)
    assert wait == (Wait(expected, NOW + timedelta(minutes=30)) if expected else None)
