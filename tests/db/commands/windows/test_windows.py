"""Freezes and groups: what they refuse, what goes through, and what is refused of them."""

from typing import Any

import pytest
from sqlalchemy import Engine

from domain.commands.registry import parse_command
from domain.steering.gates import FreezeNotFoundError, FrozenError, GroupedAlreadyError, GroupNotFoundError
from domain.text.errors import InvalidInputError, RollwayError
from tests.support.pictures.pictures import PENDING, PROVISIONING, ROLLING_BACK
from tests.support.rows.deployments import ask, make_deployment, read, snapshot
from tests.support.rows.windows import freeze, thaw
from tests.support.workers.payloads import ask as parsed

NIGHT = {"freeze": "night", "cron": "0 22 * * *", "time_zone": "Europe/Berlin", "duration_seconds": 3600}


@pytest.mark.parametrize(
    ("command", "given"),
    [("activate_revision", {"revision": "v2"}), ("restart", {})],
)
def test_in_a_freeze_nothing_starts_and_the_refusal_names_it_its_end_and_the_way_through(
    engine: Engine, command: str, given: dict[str, Any]
) -> None:
    made = make_deployment(engine, "■■■")
    freeze(engine, reason="nobody is here")
    before = snapshot(engine, made.id)
    with pytest.raises(
        FrozenError, match=r"nothing of web starts in the freeze holidays \(nobody is here\) until 20.* UTC; wait"
    ):
        ask(engine, command, deployment="web", **given)
    assert snapshot(engine, made.id) == before
    assert read(engine, "SELECT name FROM revisions ORDER BY name") == [{"name": "v1"}, {"name": "v2"}]


def test_a_first_revision_and_one_without_a_policy_do_not_start_either(engine: Engine) -> None:
    make_deployment(engine, "", name="new", status=PENDING)
    make_deployment(engine, "■■■", name="plain", policy=None)
    freeze(engine)
    for name in ("new", "plain"):
        with pytest.raises(FrozenError):
            ask(engine, "activate_revision", deployment=name, revision="v2")


def test_whoever_goes_through_a_freeze_says_why_and_the_history_names_both(engine: Engine) -> None:
    make_deployment(engine, "■■■")
    freeze(engine)
    with pytest.raises(InvalidInputError, match="through_freeze needs a reason"):
        parsed("activate_revision", through_freeze=True)
    ask(engine, "activate_revision", deployment="web", revision="v2", through_freeze=True, reason="it leaks")
    (record,) = read(engine, "SELECT message FROM deployment_history")
    assert record["message"] == "started the rollout to v2, through freeze holidays: it leaks"
    assert read(engine, "SELECT through_freeze FROM rollouts") == [{"through_freeze": True}]


def test_the_way_back_and_what_is_there_already_are_never_frozen(engine: Engine) -> None:
    make_deployment(engine, "■■■", name="rests")
    for name in ("rolls", "back", "left"):
        make_deployment(engine, "■■|■", name=name, status=ROLLING_BACK if name == "back" else PROVISIONING)
    freeze(engine, pauses=True)
    assert ask(engine, "undo", deployment="rests", revision="v2").result["activation"] == "begun"
    assert ask(engine, "activate_revision", deployment="rolls", revision="v2").result["activation"] == "resumed"
    assert ask(engine, "abort", deployment="rolls").result["already"] is False
    again = ask(engine, "activate_revision", deployment="left", revision="v1", supersede=True)
    assert again.result["activation"] == "superseded"
    ask(engine, "scale", deployment="back", desired_replicas=2)
    ask(engine, "destroy", deployment="back")


def test_a_freeze_that_has_ended_or_is_over_others_refuses_nothing(engine: Engine) -> None:
    make_deployment(engine, "■■■")
    freeze(engine, "others", deployments=["cart*"])
    freeze(engine, "past", seconds=-1)
    freeze(engine)
    thaw(engine)
    assert ask(engine, "activate_revision", deployment="web", revision="v2").result["activation"] == "begun"


def test_who_sets_a_freeze_is_told_when_it_begins(engine: Engine) -> None:
    freeze(engine)
    told = ask(engine, "set_freeze", **NIGHT, groups=["shop"]).result
    assert told["starts_at"].endswith(("T20:00:00+00:00", "T21:00:00+00:00"))
    assert read(engine, "SELECT name, time_zone FROM freezes ORDER BY name") == [
        {"name": "holidays", "time_zone": None},
        {"name": "night", "time_zone": "Europe/Berlin"},
    ]


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"cron": "0 22 * *"}, "cron line of five fields"),
        ({"cron": "0 22 * * * *"}, "cron line of five fields"),
        ({"cron": "0 25 * * *"}, "bad hour"),
        ({"cron": "0 0 30 2 *"}, "bad day-of-month"),
        ({"duration_seconds": None}, "needs duration_seconds, with cron or from now on, or starts_at and ends_at"),
        ({"starts_at": "2026-01-01T00:00Z"}, "needs duration_seconds"),
        ({"duration_seconds": 59}, "duration_seconds"),
        ({"starts_at": "2026-01-01T00:00"}, "starts_at"),
        ({"deployments": ["We b"]}, "deployment 1: must be the name"),
        ({"cron": None, "duration_seconds": None}, "needs duration_seconds"),
        (
            {"cron": None, "duration_seconds": None, "starts_at": "2026-01-01T00:00Z", "ends_at": "2026-01-01T00:00Z"},
            "later than",
        ),
    ],
)
def test_a_freeze_that_makes_no_sense_is_refused(changed: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        parse_command("rollway.set_freeze", {"request_id": "r", **NIGHT, **changed})


@pytest.mark.parametrize("zone", ["Europe/Berlim", "../etc/passwd", "", "Europe", "/etc/localtime"])
def test_a_time_zone_that_is_none_is_refused(engine: Engine, zone: str) -> None:
    with pytest.raises(InvalidInputError, match="there is no time zone"):
        ask(engine, "set_freeze", **{**NIGHT, "time_zone": zone})
    assert read(engine, "SELECT * FROM freezes") == []


def test_a_deployment_is_in_one_group_at_most(engine: Engine) -> None:
    ask(engine, "set_group", group="shop", deployments=["cart", "web"], most_at_once=1)
    with pytest.raises(GroupedAlreadyError, match="web is in group shop already"):
        ask(engine, "set_group", group="all", deployments=["api", "web"])
    ask(engine, "set_group", group="shop", deployments=["cart"], in_order=True)
    ask(engine, "set_group", group="all", deployments=["web", "api"])
    assert read(
        engine, "SELECT group_name, deployment FROM deployment_group_members ORDER BY group_name, position"
    ) == [
        {"group_name": "all", "deployment": "web"},
        {"group_name": "all", "deployment": "api"},
        {"group_name": "shop", "deployment": "cart"},
    ]
    assert read(engine, "SELECT most_at_once, in_order FROM deployment_groups WHERE name = 'shop'") == [
        {"most_at_once": None, "in_order": True}
    ]


@pytest.mark.parametrize(
    ("command", "given", "refusal"),
    [
        ("delete_freeze", {"freeze": "nope"}, FreezeNotFoundError),
        ("delete_group", {"group": "nope"}, GroupNotFoundError),
    ],
)
def test_what_is_not_there_cannot_end(
    engine: Engine, command: str, given: dict[str, Any], refusal: type[RollwayError]
) -> None:
    with pytest.raises(refusal, match="lists those that exist"):
        ask(engine, command, **given)


def test_what_waits_is_looked_at_when_a_freeze_or_a_group_changes(engine: Engine) -> None:
    made = make_deployment(engine, "■■■|", status=PROVISIONING)
    for command, given in (
        ("set_freeze", NIGHT),
        ("delete_freeze", {"freeze": "night"}),
        ("set_group", {"group": "g", "deployments": ["web"]}),
        ("delete_group", {"group": "g"}),
    ):
        read(engine, "UPDATE deployments SET due_at = now() + interval '1 day' RETURNING id")
        ask(engine, command, **given)
        assert read(engine, "SELECT due_at <= clock_timestamp() AS due FROM deployments WHERE id = %s", made.id) == [
            {"due": True}
        ]
