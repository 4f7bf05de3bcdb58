"""A file that changed settings alone: what an undo puts back, and what it leaves or refuses after that."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from domain.commands.rollout_commands import Undo
from domain.model.states import RolloutOutcome
from domain.planning.buttons import Missing, Offer, available_commands, missing_commands, offers
from domain.steering.command_effect import Context
from domain.steering.rollout_history import (
    AlreadyUndoneError,
    EndedRollout,
    KnownRevision,
    NoPreviousRevisionError,
    Past,
    SettingsRelease,
    undo_goal,
    way_back,
    with_what_stays,
)
from tests.support.pictures.pictures import NOW, READY, V1, V2, blue_green, deploying, resting

ASKING = Context("asked", NOW, UUID(int=1))
WEB = resting("■■■", status=READY)
UP = EndedRollout(
    KnownRevision(V1, "v1", "a"),
    KnownRevision(V2, "v2", "b"),
    RolloutOutcome.COMPLETED,
    NOW - timedelta(hours=1),
    is_undo=False,
    size_before=3,
)
RELEASE = SettingsRelease(
    before={"replicas": 3, "policy": "rolling_update"},
    after={"replicas": 5, "policy": "blue_green"},
    revision_id=str(V2),
    rollout_id=None,
)
UNDONE = replace(RELEASE, is_undone=True)


@pytest.mark.parametrize(
    ("release", "now", "put_back"),
    [
        (RELEASE, {"replicas": 5, "policy": "blue_green"}, {"replicas": 3, "policy": "rolling_update"}),
        (RELEASE, {"replicas": 7, "policy": "blue_green"}, {"policy": "rolling_update"}),
        (RELEASE, {"replicas": 7, "policy": "canary"}, None),
        (UNDONE, {"replicas": 3, "policy": "rolling_update"}, {}),  # so that a second undo is refused
    ],
)
def test_only_settings_that_nobody_has_changed_since_are_put_back(
    release: SettingsRelease, now: dict[str, Any], put_back: dict[str, Any] | None
) -> None:
    left = release.against(now)
    assert (left.before if left else None) == put_back
    assert left is None or replace(left, before=release.before) == release


def past(settings: SettingsRelease, *ended: EndedRollout) -> Past:
    return Past(blue_green(), ended=ended, settings=settings, current="v2")


def button(after: Past) -> Offer | Missing | None:
    offered: list[Offer | Missing] = [*offers(WEB, after, ASKING), *missing_commands(WEB, after, ASKING)]
    return next((each for each in offered if each.command is Undo), None)


@pytest.mark.parametrize("ended", [[], [UP]])
def test_an_undo_puts_settings_back_before_it_goes_to_a_revision(ended: Sequence[EndedRollout]) -> None:
    after = past(RELEASE, *ended)
    assert Undo in available_commands(WEB, after, ASKING)
    assert button(after) == Offer(
        Undo,
        "back to the settings of before",
        "Put the settings of before the last file back. No replica moves to another revision.",
    )


def test_in_a_rollout_abort_goes_back_and_the_settings_stay() -> None:
    rollout = deploying("■■|◇")
    assert not [each for each in offers(rollout, past(RELEASE), ASKING) if each.command is Undo]


def test_once_the_settings_are_back_a_further_undo_goes_to_the_revision_before() -> None:
    found = button(past(UNDONE, UP))
    assert isinstance(found, Offer)
    assert (found.goal, found.values) == ("back to v1", {"revision": "v1"})
    assert found.what == "The last rollout is undone already, and v2 runs: go further back, to v1, at once."
    assert undo_goal(WEB, past(UNDONE, UP), NOW).is_further


def test_once_the_settings_are_back_and_nothing_ran_before_there_is_no_undo() -> None:
    found = button(past(UNDONE))
    assert isinstance(found, Missing)
    assert found.reason == "the settings that the last file brought to web are undone already"


@pytest.mark.parametrize(
    ("ended", "further", "advice"), [([UP], "v1", "; 'rollway undo web --to v1' goes further back"), ([], "", "")]
)
def test_a_second_undo_without_a_name_is_refused_and_says_how_to_go_further(
    ended: Sequence[EndedRollout], further: str, advice: str
) -> None:
    with pytest.raises(AlreadyUndoneError) as refused:
        way_back(WEB, ended, NOW, UNDONE)
    assert refused.value.detail == {"deployment": "web", "further": further}
    assert refused.value.message == f"the settings that the last file brought to web are undone already{advice}"


def test_settings_that_are_not_back_yet_are_in_no_revisions_way() -> None:
    assert way_back(WEB, [UP], NOW, RELEASE).revision.name == "v1"


def test_a_refusal_names_the_settings_that_no_undo_takes_back() -> None:
    with pytest.raises(NoPreviousRevisionError) as refused:
        way_back(WEB, [], NOW)
    refusal = refused.value
    assert with_what_stays(refusal, []) is refusal
    told = with_what_stays(refusal, ["3 replicas, set by ann", "a policy, set by ben"])
    assert (type(told), told.detail) == (NoPreviousRevisionError, {"deployment": "web"})
    assert told.message == (
        f"{refusal.message}. An undo goes back to a revision, and leaves what was set by itself: "
        "3 replicas, set by ann; a policy, set by ben. Apply the file of before, or set that again"
    )
