"""Which transitions are events: decisions and commands, drawn, with the types that they are told as."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.cycle.writes import decision_effects
from domain.handlers.dispatch import cycle
from domain.model.deployment import Deployment, Hold
from domain.model.policy import DeploymentPolicy
from domain.outbox.cloud_events import MEANINGS, CloudEvent, CloudEventType, told_by_command, told_by_decisions
from domain.steering.activation import activate
from domain.steering.command_effect import Context, Effect
from domain.steering.verbs import abort, destroy, pause, promote, resume, scale
from tests.support.people.people import asking, request
from tests.support.pictures.pictures import (
    DESTROYING,
    NOW,
    PENDING,
    ROLLOUT,
    SCALING,
    V2,
    V3,
    blue_green,
    deploying,
    resting,
    rolling_back,
    rolling_update,
)

LATER = NOW + timedelta(hours=1)
STOPPED = {"clock_stopped_at": NOW}
WEARY: dict[str, Any] = {"degraded_reason": "no port is free", "retry_at": NOW}
POLICY, GREEN = rolling_update(), blue_green(auto_promote=False)


def names(events: tuple[CloudEvent, ...]) -> list[str]:
    return [event.type.removeprefix("rollway.") for event in events]


@pytest.mark.parametrize(
    ("deployment", "told"),
    [
        (deploying("■■■|"), []),
        (deploying("■■|◇"), []),
        (deploying("■■■|□"), ["rollout.promoted"]),
        (rolling_back("□□□|□□□"), []),
        (resting("■■□"), []),
        (deploying("|■■■"), ["rollout.completed"]),
        (rolling_back("■■■|"), ["rollout.rolled_back"]),
        (deploying("■■■|□□□", policy=blue_green(auto_promote=True)), ["rollout.promoted", "rollout.completed"]),
        (deploying("■■■|■□", policy=blue_green(auto_promote=True)), []),
        (deploying("■■■|■□□", policy=blue_green(auto_promote=True)), ["rollout.completed"]),
        (deploying("■■■|□□□", policy=GREEN), ["rollout.waiting"]),
        (deploying("■■■|□□□", policy=GREEN, rollout=STOPPED), []),
        (deploying("■■■|□□□", policy=GREEN, paused_at=NOW), []),
        (deploying("■■|◇", rollout={"deadline": NOW}), ["rollout.turned_back"]),
        (
            deploying("■■|◇", rollout={"deadline": NOW, "desired_at_start": 2, "desired_with_revision": 3}),
            ["rollout.turned_back", "deployment.scaled"],
        ),
        (deploying("■■■|■", hold=Hold("frozen", LATER)), []),
        (resting("■■■", status=SCALING), []),
        (resting("■■■", status=SCALING, **WEARY), ["deployment.recovered"]),
        (resting("■■", status=SCALING, phase_started_at=NOW - timedelta(days=1)), ["deployment.degraded"]),
        (resting("■~", status=DESTROYING), []),
        (resting("", status=DESTROYING), ["deployment.destroyed"]),
    ],
)
def test_what_a_cycle_tells(deployment: Deployment, told: list[str]) -> None:
    decision = cycle(deployment, NOW)
    stands = deployment.rollout is not None and deployment.rollout.clock_stopped_at is not None
    asked = {deployment.id} if stands else set()
    events = told_by_decisions(decision_effects([decision], "deploying", NOW), "deploying", NOW, asked)
    assert names(events) == told
    assert all((event.actor, event.sentence) == ("deploying", decision.reason) for event in events)


def test_who_is_held_first_and_waits_for_a_person_later_is_told_of() -> None:
    held = deploying("■■■|□□□", policy=GREEN, rollout=STOPPED)
    events = told_by_decisions(
        decision_effects([cycle(held, NOW)], "deploying", NOW), "deploying", NOW, waiting_before=()
    )
    assert names(events) == ["rollout.waiting"]


Command = Callable[[Deployment, Context], Effect]


def to(revision: UUID, policy: DeploymentPolicy | None = POLICY, **more: Any) -> Command:
    return lambda deployment, who: activate(deployment, request(deployment, revision, policy, **more), who)


@pytest.mark.parametrize(
    ("deployment", "command", "told"),
    [
        (resting("", status=PENDING, current_revision_id=None), to(V2), ["deployment.activated"]),
        (resting("■■■"), to(V3), ["rollout.begun"]),
        (resting("■■■"), to(V3, policy=None), ["deployment.activated"]),
        (resting("■■■"), to(V3, desired=5), ["rollout.begun", "deployment.scaled"]),
        (resting("■■■", **WEARY), to(V3), ["rollout.begun", "deployment.recovered"]),
        (deploying("■■|◇"), to(V3, supersede=True), ["rollout.superseded", "rollout.begun"]),
        (deploying("■■|◇"), pause, ["rollout.paused"]),
        (
            deploying("■■|◇", paused_at=NOW, rollout=STOPPED),
            resume,
            ["rollout.resumed"],
        ),
        (deploying("■■|◇", paused_at=NOW, rollout=STOPPED), lambda it, _: scale(it, 5), ["deployment.scaled"]),
        (deploying("■■■|□□□", policy=GREEN), lambda deployment, _: promote(deployment), []),
        (deploying("■■|◇"), abort, ["rollout.turned_back"]),
        (deploying("■■|◇", paused_at=NOW, rollout=STOPPED), abort, ["rollout.resumed", "rollout.turned_back"]),
        (resting("■■■"), lambda deployment, _: scale(deployment, 5), ["deployment.scaled"]),
        (resting("■■■"), lambda deployment, _: scale(deployment, 3), []),
        (resting("■■■", **WEARY), lambda deployment, _: scale(deployment, 3), ["deployment.recovered"]),
        (resting("■■■"), destroy, ["deployment.destroying"]),
        (deploying("■■|◇"), destroy, ["rollout.destroyed", "deployment.destroying"]),
        (resting("■~", status=DESTROYING), lambda it, who: destroy(it, who, force=True), []),
        (
            deploying("■■|◇", paused_at=NOW, rollout=STOPPED),
            to(V3, supersede=True),
            ["rollout.superseded", "rollout.begun"],
        ),
        (rolling_back("■■|◇"), to(V3, supersede=True), ["rollout.superseded", "rollout.begun"]),
        (rolling_back("■■|◇", paused_at=NOW, rollout=STOPPED), resume, ["rollout.resumed"]),
        (deploying("■■|◇", paused_at=NOW, rollout=STOPPED), pause, []),
        (rolling_back("■■|◇"), abort, []),
        (deploying("■■|◇", **WEARY), pause, ["rollout.paused"]),
    ],
)
def test_what_a_command_tells(deployment: Deployment, command: Command, told: list[str]) -> None:
    who = replace(asking(deployment, LATER), why="by ann: a sale")
    steered = command(deployment, who)
    events = told_by_command(deployment, steered, who, "ann")
    assert names(events) == told
    assert all(event.sentence == f"{steered.sentence} by ann: a sale".strip() for event in events)


def test_how_a_rollout_ended_names_it_and_what_begins_names_itself() -> None:
    deployment = deploying("■■|◇")
    who = asking(deployment, LATER)
    ended, begun = told_by_command(deployment, to(V3, supersede=True)(deployment, who), who, "ann")
    assert (ended.rollout_id, begun.rollout_id) == (ROLLOUT, None)


def test_every_type_says_what_it_means() -> None:
    assert list(MEANINGS) == list(CloudEventType)
