"""`retry` where no rollout is repeated: failed starts are forgotten, and nothing waits for its next try."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.cycle.rollout import NoRolloutError, size_again
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, StartFailures
from domain.model.states import DeploymentLifecycleStatus, RolloutOutcome
from domain.steering.gates import Frozen, FrozenError
from domain.steering.verbs import retry
from domain.text.errors import WrongStateError
from tests.support.people.people import asking, request
from tests.support.pictures.pictures import (
    DESTROYED,
    DESTROYING,
    NOW,
    READY,
    V1,
    V2,
    deploying,
    drawn_changes,
    resting,
    rolling_back,
    rolling_update,
)

LATER = NOW + timedelta(seconds=40)
ROLLING = rolling_update()
FAILURES = StartFailures(V2, 9, NOW)
TIRED = resting("■■", status=READY, start_failures=FAILURES, degraded_reason="gave up", retry_at=LATER)


@pytest.mark.parametrize("outcome", [None, RolloutOutcome.COMPLETED, RolloutOutcome.SUPERSEDED])
def test_without_a_rollout_to_repeat_failed_starts_are_forgotten_and_tried_at_once(
    outcome: RolloutOutcome | None,
) -> None:
    last = request(TIRED, V2, ROLLING) if outcome else None
    steered = retry(TIRED, last, outcome, asking(TIRED, LATER))
    after = steered.deployment
    assert (after.start_failures, after.degraded_reason, after.retry_at) == (None, None, None)
    assert (steered.sentence, steered.details) == ("tried again now, 9 failed starts forgotten", {"forgotten": 9})
    assert (after.rollout, after.version) == (None, 2)


@pytest.mark.parametrize("deployment", [deploying("■■|◇"), rolling_back("■■|~"), resting("■■■")])
def test_now_begins_no_rollout_whatever_the_last_one_came_to(deployment: Deployment) -> None:
    last = request(deployment, V2, ROLLING)
    failing = replace(deployment, start_failures=FAILURES)
    steered = retry(failing, last, RolloutOutcome.ROLLED_BACK, asking(deployment, LATER), now=True)
    assert steered.deployment == replace(deployment, version=2)
    again = retry(deployment, last, RolloutOutcome.ROLLED_BACK, asking(deployment, LATER), now=True)
    assert (again.already, again.deployment) == (True, deployment)


def test_failures_from_before_a_replica_that_has_been_well_for_a_minute_are_none() -> None:
    up = replace(resting("■■"), start_failures=replace(FAILURES, came_up_at=NOW))
    assert retry(up, None, None, asking(up, NOW + timedelta(seconds=59))).details == {"forgotten": 9}
    with pytest.raises(NoRolloutError, match="no start has failed"):
        retry(up, None, None, asking(up, NOW + timedelta(seconds=60)))


@pytest.mark.parametrize("status", [DESTROYING, DESTROYED], ids=str)
def test_what_is_being_destroyed_is_not_tried_again(status: DeploymentLifecycleStatus) -> None:
    leaving = resting("■", status=status, start_failures=FAILURES)
    with pytest.raises(WrongStateError, match="it can be tried again until it is destroyed"):
        retry(leaving, None, None, asking(leaving, LATER))


@pytest.mark.parametrize("tired", [{"start_failures": FAILURES}, {"degraded_reason": "gave up"}, {"retry_at": LATER}])
def test_each_thing_that_is_tried_again_later_is_tried_now(tired: dict[str, Any]) -> None:
    steered = retry(resting("■■", status=READY, **tired), None, None, asking(TIRED, NOW))
    assert (steered.already, steered.deployment) == (False, resting("■■", status=READY, version=2))


HURRIED = rolling_update(1, 0, undo_max_surge="100%", min_ready_seconds=60)


@pytest.mark.parametrize(
    ("deployment", "revision"), [(resting("■■■"), V1), (rolling_back("■■■|", rollout={"is_undo": True}), V2)]
)
def test_an_undo_is_tried_again_as_one_in_a_freeze_too(deployment: Deployment, revision: UUID) -> None:
    outcome = None if deployment.rollout else RolloutOutcome.ROLLED_BACK
    last = replace(request(deployment, revision, HURRIED), frozen=Frozen("weekend", "", LATER))
    rollout = retry(deployment, replace(last, is_undo=True), outcome, asking(deployment, LATER)).deployment.rollout
    assert rollout is not None
    assert (rollout.is_undo, rollout.promote_requested) == (True, True)
    assert rollout.policy.as_json()["spec"]["max_surge"] == "100%"
    assert rollout.policy.as_json()["spec"]["min_ready_seconds"] == 0
    with pytest.raises(FrozenError):
        retry(deployment, last, outcome, asking(deployment, LATER))


def test_what_begins_again_waits_for_no_pause_of_starts_that_failed() -> None:
    failed = replace(resting("■■■", status=READY, current_revision_id=V2), start_failures=StartFailures(V1, 8, LATER))
    begun = retry(failed, request(failed, V1, ROLLING), RolloutOutcome.ROLLED_BACK, asking(failed, LATER)).deployment
    assert drawn_changes(begun, cycle(begun, LATER).changes) == "create 1, drain ■"
    under_way = deploying("■■|", start_failures=FAILURES)
    assert retry(under_way, request(under_way, V2, ROLLING), None, asking(under_way, LATER)).deployment.start_failures


@pytest.mark.parametrize(("wanted", "with_revision", "again"), [(3, 5, 5), (8, 5, None), (3, None, None), (5, 5, None)])
def test_a_size_comes_again_with_its_revision_unless_somebody_has_scaled_since(
    wanted: int, with_revision: int | None, again: int | None
) -> None:
    assert size_again(resting("■■■", wanted), with_revision, 3) == again
    assert size_again(rolling_back("■■■|", wanted), with_revision, 3) == with_revision
