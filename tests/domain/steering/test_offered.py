"""Which verbs are offered, drawn: each deployment beside what the shipped rules would take from a person now."""

from uuid import UUID

import pytest

from domain.commands.base import DeploymentCommand
from domain.commands.registry import COMMANDS
from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome
from domain.planning.buttons import available_commands
from domain.steering.command_effect import Asking
from domain.steering.rollout_history import EndedRollout, KnownRevision, Past
from tests.support.pictures.pictures import (
    DESTROYED,
    DESTROYING,
    NOW,
    PENDING,
    V1,
    V2,
    V3,
    blue_green,
    deploying,
    resting,
    rolling_back,
)
from tests.support.pictures.policies import canary

ASKING = Asking("asked", NOW, UUID(int=1))
FIRST = KnownRevision(V3, "v0", "a")
RAN = EndedRollout(FIRST, KnownRevision(V2, "v2", "b"), RolloutOutcome.COMPLETED, NOW, is_undo=False, size_before=3)
POLICY = blue_green()

TABLE = [
    (resting("", status=PENDING, current_revision_id=None), Past(POLICY), "scale"),
    (resting("■■■"), Past(POLICY), "rolling_update restart scale"),
    (resting("■■■"), Past(POLICY, other=V3), "activate_revision rolling_update restart scale"),
    (resting("■■■"), Past(POLICY, other=V3, ended=[RAN]), "activate_revision rolling_update undo restart scale"),
    (
        resting("■■■"),
        Past(POLICY, other=V3, last=(V1, RolloutOutcome.ROLLED_BACK)),
        "activate_revision rolling_update retry restart scale",
    ),
    (deploying("■■|◇"), Past(POLICY, other=V3, last=(V2, None)), "pause abort undo scale"),
    (deploying("■■|◇", paused_at=NOW), Past(POLICY, other=V3, last=(V2, None)), "resume abort undo scale"),
    (deploying("■■■|□□□", policy=POLICY), Past(POLICY, other=V3), "promote pause abort undo scale"),
    (deploying("■■|■", policy=canary(), rollout={"weight": 500}), Past(None), "promote pause abort undo scale"),
    (rolling_back("■■|~"), Past(POLICY, other=V3, last=(V2, None)), "pause retry scale"),
]
AT_ANY_TIME = "destroy add_revision set_policy set_traffic set_maintenance set_autoscaling_rules"
"""Offered until it is being destroyed."""


def taken(deployment: Deployment, past: Past) -> tuple[str, ...]:
    return tuple(kind.task.removeprefix("rollway.") for kind in available_commands(deployment, past, ASKING))


@pytest.mark.parametrize(("deployment", "past", "verbs"), TABLE)
def test_what_would_be_taken_is_offered_and_nothing_else(deployment: Deployment, past: Past, verbs: str) -> None:
    assert sorted(taken(deployment, past)) == sorted(f"{verbs} {AT_ANY_TIME}".split())


@pytest.mark.parametrize("gone", [resting("~~", status=DESTROYING), resting("", status=DESTROYED)])
def test_of_what_is_being_destroyed_nothing_is_offered(gone: Deployment) -> None:
    assert taken(gone, Past(POLICY, other=V3, ended=[RAN])) == ()


@pytest.mark.parametrize("wanted", [0, 5])
def test_a_size_is_offered_whichever_there_is(wanted: int) -> None:
    assert "scale" in taken(resting("■■■", wanted), Past(POLICY))


def test_a_promotion_that_is_asked_for_is_not_offered_again() -> None:
    asked = deploying("■■■|□□□", policy=POLICY, rollout={"promote_requested": True})
    assert "promote" not in taken(asked, Past(POLICY))


def test_each_command_to_a_deployment_is_offered_somewhere() -> None:
    of_one = {kind for kind in COMMANDS.values() if issubclass(kind, DeploymentCommand)}
    assert {kind for deployment, past, _ in TABLE for kind in available_commands(deployment, past, ASKING)} == of_one
