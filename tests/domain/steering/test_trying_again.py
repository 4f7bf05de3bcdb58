"""`retry` where no rollout is repeated: failed starts are forgotten, and nothing waits for its next try."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.cycle.rollout import NoRolloutError
from domain.model.deployment import Deployment, StartFailures
from domain.model.states import DeploymentLifecycleStatus, RolloutOutcome
from domain.steering.trying_again import retry
from domain.words.errors import WrongStateError
from tests.support.people.people import asking, request
from tests.support.pictures.pictures import (
    DESTROYED,
    DESTROYING,
    NOW,
    READY,
    V2,
    deploying,
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
    assert (steered.said, steered.details) == ("tried again now, 9 failed starts forgotten", {"forgotten": 9})
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
