"""The next snapshot of a deployment, field by field: what a decision changes, and that all else stays."""

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from domain.cycle.effects import after
from domain.devices.room import DeviceRoom
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, Hold, StartFailures
from domain.model.preparation import Preparation, PreparationState
from domain.model.states import PREPARING
from tests.support.pictures.pictures import (
    DESTROYED,
    DESTROYING,
    NOW,
    PENDING,
    PROVISIONING,
    READY,
    ROLLING_BACK,
    SCALING,
    V1,
    V2,
    deploying,
    resting,
    rolling_back,
)

LATER = NOW + timedelta(minutes=5)
HOSTS = (Preparation("h1", PreparationState.RUNNING),)
KEPT: dict[str, Any] = {
    "count_stopping": True,
    "may_surge": False,
    "start_failures": StartFailures(V1, 1, NOW - timedelta(hours=1)),
}
"""What no decision changes."""


def changed(before: Deployment) -> dict[str, Any]:
    """The fields of the deployment that its next look changes, but for its routes and its rollout."""
    now = after(cycle(before, LATER), LATER)
    aside = ("routes", "rollout")
    names = [each.name for each in fields(before) if each.name not in aside]
    return {name: getattr(now, name) for name in names if getattr(now, name) != getattr(before, name)}


NEXT = {"version": 2}
BEGINS = {**NEXT, "phase_started_at": LATER}
ENDED = {**BEGINS, "deploying_revision_id": None}


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        # a wait
        (deploying("■■|◇", **KEPT), {}),
        (resting("■■■", status=READY, **KEPT), {}),
        (deploying("■■■|", status=PREPARING, preparations=HOSTS, **KEPT), {}),
        (deploying("■■■|", paused_at=NOW, rollout={"clock_stopped_at": NOW}, **KEPT), {}),
        # a step of many
        (deploying("■■■|", phase_attempts=2, **KEPT), {**NEXT, "phase_attempts": 0}),
        (rolling_back("■■|■", **KEPT), NEXT),
        (resting("■■", **KEPT), NEXT),
        # a move
        (deploying("|■■■", **KEPT), {**ENDED, "status": READY, "current_revision_id": V2}),
        (rolling_back("■■■|", **KEPT), {**ENDED, "status": READY}),
        (
            deploying("■■|◇", 5, rollout={"desired_at_start": 3, "deadline": LATER}, **KEPT),
            {**BEGINS, "status": ROLLING_BACK, "desired_replicas": 3},
        ),
        (
            deploying("■■■|", status=PREPARING, preparations=(replace(HOSTS[0], state=PreparationState.DONE),), **KEPT),
            {**BEGINS, "status": PROVISIONING, "preparations": ()},
        ),
        (resting("■■■", **KEPT), {**BEGINS, "status": READY}),
        (
            resting("■■■", degraded_reason="it failed", retry_at=NOW, **KEPT),
            {**BEGINS, "status": READY, "degraded_reason": None, "retry_at": None},
        ),
        (resting("■■", status=READY, **KEPT), {**BEGINS, "status": SCALING}),
        (resting("", status=PENDING, **KEPT), {**BEGINS, "status": SCALING}),
        (resting("", status=DESTROYING, **KEPT), {**BEGINS, "status": DESTROYED}),
    ],
)
def test_a_look_changes_this_and_nothing_else(before: Deployment, changes: dict[str, Any]) -> None:
    assert changed(before) == changes


def test_the_room_on_devices_stays_as_it_was_read() -> None:
    assert changed(deploying("■■■|", devices=DeviceRoom({V1: 0, V2: 2}))) == NEXT


def test_a_hold_is_looked_for_anew_by_each_look() -> None:
    assert changed(deploying("■■■|", hold=Hold("a freeze", LATER + timedelta(days=1)))) == {"hold": None}


def test_a_rollout_that_ends_leaves_none_behind() -> None:
    assert after(cycle(deploying("|■■■", rollout={"steps": 3}), LATER), LATER).rollout is None
