"""Sizes that come with a revision: taken over in every state, taken back with it, and brought back with it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.cycle.effects import after
from domain.handlers.check_replica import CheckReplicaHandler
from domain.handlers.deploying import DeployingProvisioningHandler
from domain.model.decision import Decision
from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome, Verdict
from domain.steering.verbs import abort
from tests.support.people.people import Ended, activate_revision, asking, retry_rollout
from tests.support.pictures.pictures import (
    NOW,
    PENDING,
    PROVISIONING,
    READY,
    V1,
    V2,
    V3,
    deploying,
    resting,
    rolling_update,
)

ROLLING = rolling_update()


@pytest.mark.parametrize(
    ("deployment", "revision", "expected", "activation"),
    [
        (resting("■■■", status=PENDING, current_revision_id=None), V1, 5, "first"),
        (resting("■■■", status=READY), V2, 5, "converging"),
        (resting("■■■", 5, status=READY), V2, 5, "already_active"),
        (resting("■■■", status=READY), V3, 5, "begun"),
        (deploying("■■|■"), V2, 5, "resumed"),
        (deploying("■■|■"), V3, 5, "superseded"),
        (deploying("■■|■"), V1, 5, "superseded"),
    ],
)
def test_a_size_given_with_a_revision_is_taken_over_in_every_state(
    deployment: Deployment, revision: object, expected: int, activation: str
) -> None:
    (wanted,) = (known for known in (V1, V2, V3) if known == revision)
    steered = activate_revision(deployment, wanted, ROLLING, NOW, supersede=True, desired=5)
    assert (steered.deployment.desired_replicas, steered.details["activation"]) == (expected, activation)


def test_the_way_back_from_a_resumed_rollout_is_still_to_the_size_from_before() -> None:
    resumed = activate_revision(deploying("■■|■"), V2, ROLLING, NOW, desired=5).deployment
    assert abort(resumed, asking(resumed, NOW)).deployment.desired_replicas == 3


def test_retry_brings_back_the_size_that_came_with_the_rollout() -> None:
    begun = activate_revision(resting("■■■|", status=READY, current_revision_id=V1), V2, ROLLING, NOW, desired=8)
    back = abort(begun.deployment, asking(begun.deployment, NOW)).deployment
    assert back.desired_replicas == 3
    assert retry_rollout(back, ROLLING, [], NOW).deployment.desired_replicas == 8
    rollout = back.rollout
    assert rollout is not None
    ready = replace(back, status=READY, rollout=None, deploying_revision_id=None)
    again = retry_rollout(ready, ROLLING, [Ended(rollout, RolloutOutcome.ROLLED_BACK)], NOW).deployment
    assert (again.status, again.desired_replicas, again.deploying_revision_id) == (PROVISIONING, 8, V2)


def test_what_supersedes_begins_with_the_size_from_before_and_not_with_that_of_the_left_revision() -> None:
    begun = activate_revision(resting("■■■|", status=READY, current_revision_id=V1), V2, ROLLING, NOW, desired=8)
    aborted = abort(begun.deployment, asking(begun.deployment, NOW)).deployment
    for left in (begun.deployment, aborted):
        steered = activate_revision(left, V3, ROLLING, NOW, supersede=True)
        assert steered.ended is RolloutOutcome.SUPERSEDED
        assert (steered.deployment.desired_replicas, steered.deployment.deploying_revision_id) == (3, V3)
        assert steered.deployment.rollout is not None
        assert steered.deployment.rollout.desired_at_start == 3


def test_only_a_rule_that_changes_the_size_counts_as_an_autoscaling() -> None:
    before = resting("■■■", status=READY, last_at=NOW - timedelta(days=1))
    handler = CheckReplicaHandler()
    for desired, at in ((5, NOW), (3, before.autoscaling.last_at), (None, before.autoscaling.last_at)):
        left = after(handler.classified(Decision(Verdict.SUCCESS, "", desired_replicas=desired), before, NOW), NOW)
        assert (left.desired_replicas, left.autoscaling.last_at) == (desired or 3, at)


def test_the_way_back_to_another_size_is_no_autoscaling() -> None:
    rollout = deploying("■■|■", n=5, rollout={"desired_at_start": 3})
    turning = DeployingProvisioningHandler().classified(Decision.give_up("it cannot come up"), rollout, NOW)
    left = after(turning, NOW)
    assert (left.desired_replicas, left.autoscaling.last_at) == (3, None)
