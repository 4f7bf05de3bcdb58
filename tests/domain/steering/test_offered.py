"""Which verbs are offered, drawn: each deployment beside what the shipped rules would take from a person now."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.commands.base import DeploymentCommand
from domain.commands.registry import COMMANDS
from domain.commands.rollout_commands import Abort, ActivateRevision, Undo
from domain.model.deployment import Deployment
from domain.model.states import RolloutOutcome
from domain.planning.buttons import Missing, Offer, available_commands, missing_commands, offers
from domain.steering.command_effect import Context
from domain.steering.gates import Frozen
from domain.steering.rollout_history import EndedRollout, KnownRevision, NamedRevision, Past
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

ASKING = Context("asked", NOW, UUID(int=1))
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


OLD, GOOD, BAD = (KnownRevision(UUID(int=number), f"v{number}", str(number)) for number in (1, 2, 3))
UP = EndedRollout(OLD, GOOD, RolloutOutcome.COMPLETED, NOW - timedelta(hours=1), is_undo=False, size_before=3)
BACK = EndedRollout(GOOD, BAD, RolloutOutcome.ROLLED_BACK, NOW - timedelta(minutes=5), is_undo=False, size_before=3)
UNDONE = EndedRollout(GOOD, OLD, RolloutOutcome.COMPLETED, NOW - timedelta(minutes=5), is_undo=True, size_before=3)
FROZEN = Frozen("sale", "black friday", NOW + timedelta(hours=4))
FROZEN_UNTIL, UNDER_WAY = "frozen until 16:00 UTC", "a rollout is under way"


def at(revision: KnownRevision, *ended: EndedRollout, **more: Any) -> tuple[Deployment, Past]:
    """A deployment at rest that runs this revision."""
    deployment = resting("■■■", current_revision_id=revision.id)
    return deployment, Past(POLICY, other=V3, ended=ended, current=revision.name, **more)


def offer(deployment: Deployment, past: Past, kind: type[DeploymentCommand]) -> Offer | None:
    return next((each for each in offers(deployment, past, ASKING) if each.command is kind), None)


@pytest.mark.parametrize(
    ("case", "what"),
    [
        (at(GOOD, UP), "Go back to v1, which ran before v2"),
        (at(GOOD, UP, frozen=FROZEN), "Go back to v1, which ran before v2"),
        # a rollout that went back by itself, also within the minute after it
        (at(GOOD, UP, BACK), "The last rollout is undone already, and v2 runs: go further back, to v1"),
        (at(GOOD, UP, replace(BACK, ended_at=NOW)), "The last rollout is undone already, and v2 runs"),
    ],
)
def test_an_undo_names_where_it_leads_to(case: tuple[Deployment, Past], what: str) -> None:
    undo = offer(*case, Undo)
    assert undo is not None
    assert (undo.goal, undo.revision, undo.values) == ("back to v1", "v1", {"revision": "v1"})
    assert undo.what.startswith(what)


def test_a_rollout_has_one_way_back_and_says_where_to() -> None:
    moving, past = deploying("■■|◇"), Past(POLICY, other=V3, current="v1")
    abort = offer(moving, past, Abort)
    assert abort
    assert (abort.goal, offer(moving, past, Undo)) == ("back to v1", None)
    assert absent(moving, past)["undo"] == ("a rollout is under way, and Abort goes back to v1", "")


def absent(deployment: Deployment, past: Past) -> dict[str, tuple[str, str]]:
    missing = missing_commands(deployment, past, ASKING)
    return {each.command.task.removeprefix("rollway."): (each.reason, each.way) for each in missing}


@pytest.mark.parametrize(
    ("deployment", "past", "kind", "reason", "way"),
    [
        (*at(GOOD, UP, frozen=FROZEN), "activate_revision", FROZEN_UNTIL, "ignore the freeze"),
        (*at(GOOD, UP, frozen=FROZEN), "rolling_update", FROZEN_UNTIL, "ignore the freeze"),
        (*at(GOOD, UP, frozen=FROZEN), "restart", FROZEN_UNTIL, "ignore the freeze"),
        (*at(GOOD, UP, BACK, last=(BAD.id, BACK.outcome), frozen=FROZEN), "retry", FROZEN_UNTIL, "ignore the freeze"),
        (*at(GOOD), "undo", "no rollout has led to the current revision of web", ""),
        (*at(OLD, UP, UNDONE), "undo", "the rollout of web to v2 is undone already, and web runs v1", ""),
        (resting("■■■"), Past(POLICY), "activate_revision", "web has no other revision", ""),
        (
            deploying("■■|◇"),
            Past(POLICY, other=V3),
            "activate_revision",
            "a rollout is under way",
            "replace the rollout",
        ),
        (deploying("■■|◇"), Past(POLICY), "restart", UNDER_WAY, ""),
        (
            deploying("■■|◇"),
            Past(POLICY, other=V3, frozen=FROZEN),
            "rolling_update",
            UNDER_WAY,
            "replace the rollout and ignore the freeze",
        ),
        (rolling_back("■■|~"), Past(POLICY, other=V3, current="v1"), "undo", "it is being rolled back to v1", ""),
    ],
)
def test_a_command_that_is_missing_says_why_and_the_way_past_it(
    deployment: Deployment, past: Past, kind: str, reason: str, way: str
) -> None:
    assert absent(deployment, past)[kind] == (reason, way)


def test_what_was_rolled_back_before_is_offered_as_a_way_all_the_same() -> None:
    third = KnownRevision(UUID(int=4), "v4", OLD.content)
    back = replace(BACK, to_revision=GOOD, from_revision=OLD)
    on = EndedRollout(GOOD, third, RolloutOutcome.COMPLETED, NOW, is_undo=False, size_before=3)
    reason, way = absent(*at(third, back, on))["undo"]
    assert (reason, way) == ("what web ran before was rolled back itself", "go back to v2 anyway")


@pytest.mark.parametrize(
    ("newer", "ended", "chosen"),
    [
        ([], [UP], {}),
        ([NamedRevision(V3, "v4")], [UP], {"revision": "v4"}),
        ([NamedRevision(BAD.id, "v3")], [UP, BACK], {}),
        ([NamedRevision(V3, "v4"), NamedRevision(BAD.id, "v3")], [UP, BACK], {"revision": "v4"}),
    ],
)
def test_a_rollout_begins_with_the_newest_good_revision_or_with_none(
    newer: list[NamedRevision], ended: list[EndedRollout], chosen: dict[str, str]
) -> None:
    roll_out = offer(*at(GOOD, *ended, newer=newer), ActivateRevision)
    assert roll_out
    assert roll_out.values == chosen


def test_of_what_is_being_destroyed_nothing_is_explained() -> None:
    assert missing_commands(resting("~~", status=DESTROYING), Past(POLICY, frozen=FROZEN), ASKING) == ()


def missing(deployment: Deployment, past: Past, task: str) -> Missing:
    (found,) = (m for m in missing_commands(deployment, past, ASKING) if m.command.task == f"rollway.{task}")
    return found


@pytest.mark.parametrize(
    ("case", "task", "revision", "values"),
    [
        (at(GOOD, UP, frozen=FROZEN), "restart", "", {"through_freeze": True}),
        (
            at(GOOD, UP, frozen=FROZEN, newer=[NamedRevision(V3, "v4")]),
            "activate_revision",
            "",
            {"revision": "v4", "through_freeze": True},
        ),
        ((deploying("■■|◇"), Past(POLICY, other=V3)), "activate_revision", "", {"supersede": True}),
        (
            (deploying("■■|◇"), Past(POLICY, other=V3, frozen=FROZEN)),
            "rolling_update",
            "",
            {"supersede": True, "through_freeze": True},
        ),
        (at(OLD, replace(BACK, to_revision=BAD, from_revision=OLD)), "undo", "", {}),
    ],
)
def test_the_way_past_a_refusal_fills_in_what_it_takes(
    case: tuple[Deployment, Past], task: str, revision: str, values: dict[str, object]
) -> None:
    offered = missing(*case, task).offer
    assert offered is not None
    assert (offered.command.task, offered.revision, offered.values) == (f"rollway.{task}", revision, values)


def test_the_way_to_what_was_rolled_back_names_it_in_its_button() -> None:
    third = KnownRevision(UUID(int=4), "v4", OLD.content)
    back = replace(BACK, to_revision=GOOD, from_revision=OLD)
    offered = missing(
        *at(third, back, EndedRollout(GOOD, third, UP.outcome, NOW, is_undo=False, size_before=3)), "undo"
    ).offer
    assert offered is not None
    assert (offered.revision, offered.values) == ("v2", {"revision": "v2"})


def test_what_has_no_way_past_has_no_button() -> None:
    assert missing(resting("■■■"), Past(POLICY), "activate_revision").offer is None
    assert missing(deploying("■■|◇"), Past(POLICY), "restart").offer is None


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (deploying("■■|◇"), "a rollout is under way"),
        (rolling_back("■■|~"), "it is being rolled back to v1"),
        (resting("", status=PENDING, current_revision_id=None), "web runs nothing that could be changed"),
    ],
)
def test_a_changed_revision_is_missing_for_this_reason(state: Deployment, reason: str) -> None:
    assert missing(state, Past(POLICY, current="v1"), "rolling_update").reason == reason
