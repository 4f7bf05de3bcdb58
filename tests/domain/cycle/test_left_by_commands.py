"""What each command leaves of a deployment: the values that are other ones now, and no more than these."""

from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.model.deployment import Deployment, Rollout
from domain.steering.activation import activate
from domain.steering.command_effect import Effect
from tests.support.people.people import ask, asking, request
from tests.support.pictures.pictures import (
    DESTROYING,
    NOW,
    PENDING,
    PROVISIONING,
    READY,
    ROLLING_BACK,
    V1,
    V2,
    V3,
    blue_green,
    deploying,
    resting,
    rolling_back,
    rolling_update,
)

LATER = NOW + timedelta(minutes=5)
WEARY: dict[str, Any] = {"phase_attempts": 2, "degraded_reason": "no port is free", "retry_at": LATER}
REFRESHED: dict[str, Any] = {"degraded_reason": None, "retry_at": None}
STOPPED = {"clock_stopped_at": NOW}
RESIZED = deploying("■■|◇", n=5, rollout={"desired_at_start": 3, "desired_with_revision": 5, "failed_routes": 2})
POLICY = rolling_update()


def changed(before: Deployment, steered: Effect) -> dict[str, Any]:
    """Those of the rollout as rollout.NAME."""
    assert (steered.already, steered.deployment.version) == (False, before.version + 1)
    was, now = flat(before), flat(steered.deployment)
    return {name: now[name] for name in now if name != "version" and now[name] != was.get(name)}


def flat(deployment: Deployment) -> dict[str, Any]:
    rollout = asdict(deployment.rollout) if deployment.rollout else {}
    mine = {name: getattr(deployment, name) for name in deployment.__slots__ if name != "rollout"}
    return {**mine, "in_a_rollout": bool(rollout), **{f"rollout.{name}": value for name, value in rollout.items()}}


@pytest.mark.parametrize(
    ("command", "deployment", "changes"),
    [
        ("pause", deploying("■■|◇"), {"paused_at": LATER, "rollout.clock_stopped_at": LATER}),
        ("pause", deploying("■■|◇", rollout=STOPPED), {"paused_at": LATER}),
        ("resume", deploying("■■|◇", paused_at=NOW, rollout=STOPPED), {"paused_at": None}),
        ("promote", deploying("■■■|□□□", policy=blue_green()), {"rollout.promote_requested": True}),
        (
            "abort",
            replace(RESIZED, paused_at=NOW, phase_attempts=2),
            {
                "status": ROLLING_BACK,
                "desired_replicas": 3,
                "paused_at": None,
                "phase_started_at": LATER,
                "phase_attempts": 0,
            },
        ),
        ("abort", rolling_back("■■|◇", paused_at=NOW), {"paused_at": None}),
        (
            "abort",
            rolling_back("■■|◇", paused_at=NOW, rollout=STOPPED),
            {"paused_at": None, "rollout.clock_stopped_at": None},
        ),
        ("scale to 5", resting("■■■", status=READY, **WEARY), {"desired_replicas": 5, **REFRESHED}),
        (
            "scale to 7",
            RESIZED,
            {"desired_replicas": 7, "rollout.desired_at_start": 7, "rollout.desired_with_revision": None},
        ),
        (
            "destroy",
            deploying("■■|◇", paused_at=NOW, phase_attempts=2),
            {
                "status": DESTROYING,
                "deploying_revision_id": None,
                "in_a_rollout": False,
                "paused_at": None,
                "phase_started_at": LATER,
                "phase_attempts": 0,
            },
        ),
    ],
)
def test_a_command_changes_this_and_nothing_else(command: str, deployment: Deployment, changes: dict[str, Any]) -> None:
    assert changed(deployment, ask(command, deployment, LATER)) == changes


@pytest.mark.parametrize(
    ("deployment", "revision", "desired", "changes"),
    [
        (resting("", status=PENDING, current_revision_id=None, **WEARY), V1, None, {"current_revision_id": V1}),
        (resting("■■■", status=READY, **WEARY), V3, 5, {"current_revision_id": V3, "desired_replicas": 5}),
        (resting("■|■■■", status=READY, **WEARY), V2, None, {}),
        (resting("■■■", status=READY, **WEARY), V2, 5, {"desired_replicas": 5}),
    ],
)
def test_without_a_policy_the_pointer_moves_and_what_was_given_up_is_tried_again(
    deployment: Deployment, revision: UUID, desired: int | None, changes: dict[str, Any]
) -> None:
    steered = activate(deployment, request(deployment, revision, None, desired=desired), asking(deployment, LATER))
    assert changed(deployment, steered) == {**REFRESHED, **changes}
    assert steered.details["revision"] == str(revision)


@pytest.mark.parametrize(
    ("desired", "changes"),
    [
        (None, {}),
        (3, {"rollout.desired_with_revision": 3}),
        (5, {"desired_replicas": 5, "rollout.desired_with_revision": 5}),
    ],
)
def test_a_rollout_that_is_asked_for_again_goes_on(desired: int | None, changes: dict[str, Any]) -> None:
    paused = deploying("■■|◇", paused_at=NOW)
    steered = activate(paused, request(paused, V2, POLICY, desired=desired), asking(paused, LATER))
    assert changed(paused, steered) == {"paused_at": None, **changes}


@pytest.mark.parametrize(
    "before",
    [
        resting("■■|", status=READY, current_revision_id=V1, **WEARY),
        deploying("■■|◇", paused_at=NOW, **WEARY),
        replace(RESIZED, status=ROLLING_BACK),
    ],
)
def test_a_rollout_begins_with_clocks_counters_and_sizes_of_its_own_whatever_was_before(before: Deployment) -> None:
    who = asking(before, LATER)
    begun = activate(before, request(before, V3, POLICY, supersede=True, desired=8), who).deployment
    assert begun == replace(
        before,
        version=before.version + 1,
        status=PROVISIONING,
        desired_replicas=8,
        deploying_revision_id=V3,
        phase_started_at=LATER,
        phase_attempts=0,
        paused_at=None,
        **REFRESHED,
        rollout=Rollout(
            id=who.rollout_id,
            from_revision_id=V1,
            to_revision_id=V3,
            policy=POLICY,
            started_at=LATER,
            last_progress_at=LATER,
            deadline=LATER + timedelta(minutes=30),
            desired_at_start=3,
            desired_with_revision=8,
            failed_routes=0,
            steps=0,
            clock_stopped_at=None,
            promote_requested=False,
        ),
    )


@pytest.mark.parametrize(("desired", "size"), [(None, 3), (7, 7)])
def test_the_current_revision_asked_for_in_a_rollout_turns_it_back_to_its_size(desired: int | None, size: int) -> None:
    who = asking(RESIZED, LATER)
    wanted = replace(request(RESIZED, V1, POLICY, supersede=True, desired=desired), revision_name="v1")
    steered = activate(RESIZED, wanted, who)
    assert (steered.deployment.status, steered.deployment.desired_replicas) == (ROLLING_BACK, size)
    assert (steered.sentence, steered.ended) == ("started the rollout to v1, in place of the one before", None)
    assert steered.back_reason == "v1 asked for again by ann"
