"""What each command about the fleet has done, in a sentence for the history."""

from typing import Any

import pytest

from domain.commands.deeds import deed, staying, target_of
from domain.commands.registry import COMMANDS

FREEZE: dict[str, Any] = {"freeze": "night", "frozen_until": None, "starts_at": None}
GROUP: dict[str, Any] = {"group": "shop", "deployments": ["web", "api"], "most_at_once": None, "in_order": False}
SUBSCRIPTION: dict[str, Any] = {"subscription": "ci", "webhook": None, "task": None, "queue": None}
EVE, NOON = "2026-12-24T18:00:00+00:00", "2026-12-24T12:00:00+00:00"


@pytest.mark.parametrize(
    ("task", "answer", "sentence"),
    [
        ("set_freeze", FREEZE, "night: over, for all deployments"),
        ("set_freeze", {**FREEZE, "deployments": (), "groups": ()}, "night: over, for all deployments"),
        (
            "set_freeze",
            {**FREEZE, "starts_at": EVE, "deployments": ("web", "api-*")},
            "night: from 2026-12-24 18:00 UTC, for web, api-*",
        ),
        (
            "set_freeze",
            {**FREEZE, "frozen_until": NOON, "starts_at": EVE, "deployments": ("web",), "groups": ("shop",)},
            "night: on until 2026-12-24 12:00 UTC, for web, group shop",
        ),
        ("delete_freeze", {"freeze": "night"}, "night freezes nothing any more"),
        ("set_group", GROUP, "shop: web, api roll out any number at once"),
        (
            "set_group",
            {**GROUP, "most_at_once": 2, "in_order": True},
            "shop: web, api roll out at most 2 at once, in this order",
        ),
        ("delete_group", {"group": "shop"}, "shop is no longer a group"),
        ("set_subscription", {**SUBSCRIPTION, "webhook": "pager"}, "ci: the target pager is told from now on"),
        (
            "set_subscription",
            {**SUBSCRIPTION, "task": "shop.told", "queue": "shop"},
            "ci: the task shop.told in queue shop is told from now on",
        ),
        ("delete_subscription", {"subscription": "ci"}, "ci is no longer subscribed"),
        ("resend_events", {"subscription": "ci", "events": 1}, "ci: 1 event sent again now"),
        ("forget_events", {"subscription": "ci", "events": 3}, "ci: 3 events forgotten"),
        (
            "drain_host",
            {"host": "m1", "deployments": 2, "stay": ()},
            "m1 is drained, with replicas of 2 deployments",
        ),
        (
            "drain_host",
            {"host": "m1", "deployments": 1, "stay": ("web",)},
            "m1 is drained, with replicas of 1 deployment; no other host takes web, so these stay",
        ),
        ("undrain_host", {"host": "m1"}, "m1 takes replicas again"),
        ("forget_host", {"host": "m1", "deployments": 2}, "m1 is forgotten"),
        ("scale", {"deployment": "web"}, ""),
    ],
)
def test_a_command_about_the_fleet_says_what_it_has_done(task: str, answer: dict[str, Any], sentence: str) -> None:
    assert deed(COMMANDS[f"rollway.{task}"], answer) == sentence


@pytest.mark.parametrize(
    ("names", "clause"),
    [
        ([], ""),
        (["a"], "no other host takes a, so these stay"),
        (["a", "b", "c", "d", "e"], "no other host takes a, b, c, d, e, so these stay"),
        (["a", "b", "c", "d", "e", "f", "g"], "no other host takes a, b, c, d, e and 2 more, so these stay"),
    ],
)
def test_of_the_deployments_that_stay_five_are_named_and_the_rest_is_counted(names: list[str], clause: str) -> None:
    assert staying(names) == clause


@pytest.mark.parametrize(
    ("answer", "target"),
    [
        (FREEZE, "night"),
        (GROUP, "shop"),
        (SUBSCRIPTION, "ci"),
        ({"host": "m1", "deployments": 2}, "m1"),
    ],
)
def test_the_history_files_it_under_the_name_that_the_command_gave(answer: dict[str, Any], target: str) -> None:
    assert target_of(answer) == target
