"""Commands that people send: of each field the last value that is taken and the first that is refused."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from domain.commands.base import QUERIES, Command
from domain.commands.fleet_commands import SetFreeze
from domain.commands.registry import COMMANDS, MOST_COMMAND_BYTES, UnknownCommandError, parse_command, parse_query
from domain.commands.results import Scaled
from domain.commands.rollout_commands import Undo
from domain.text.errors import InvalidInputError, TooLargeError
from tests.support.pictures.pictures import NOW
from tests.support.workers.payloads import RULE, ask, check, docker, expect_a_limit, external, rule

SERVE: dict[str, Any] = {"command": ["serve"]}
NAMES = [f"web-{number}" for number in range(1001)]
NIGHT: dict[str, Any] = {"cron": "0 22 * * *", "duration_seconds": 3600}
ONCE: dict[str, Any] = {
    **dict.fromkeys(NIGHT),
    "starts_at": "2026-12-24T18:00:00+01:00",
    "ends_at": "2027-01-02T09:00:00+01:00",
}


@pytest.mark.parametrize(
    ("command", "taken", "refused"),
    [
        ("pause", {"request_id": "r"}, {"request_id": ""}),
        ("pause", {"request_id": "r" * 320}, {"request_id": "r" * 321}),
        ("pause", {"actor": "a"}, {"actor": ""}),
        ("pause", {"actor": "a" * 200}, {"actor": "a" * 201}),
        ("pause", {"reason": "r" * 1000}, {"reason": "r" * 1001}),
        ("pause", {"schema_version": 1}, {"schema_version": 2}),
        ("pause", {"schema_version": 1}, {"schema_version": 0}),
        ("pause", {"deployment": "w" * 54}, {"deployment": "w" * 55}),
        ("undo", {"revision": "v" * 63}, {"revision": "v" * 64}),
        ("create_deployment", {"desired_replicas": 0}, {"desired_replicas": -1}),
        ("create_deployment", {"desired_replicas": 10_000}, {"desired_replicas": 10_001}),
        ("activate_revision", {"desired_replicas": 0}, {"desired_replicas": -1}),
        ("scale", {"desired_replicas": 10_000}, {"desired_replicas": 10_001}),
        ("scale", {"desired_replicas": 1}, {"desired_replicas": "1"}),
        ("scale", {"desired_replicas": 1}, {"desired_replicas": True}),
        ("promote", {"full": True, "reason": "it is night"}, {"full": True}),
        ("promote", {"full": False}, {"full": True, "reason": ""}),
        ("set_freeze", NIGHT, {**NIGHT, "duration_seconds": None}),
        ("set_freeze", {**NIGHT, "cron": None}, {**NIGHT, "cron": None, "duration_seconds": 59}),
        ("set_freeze", ONCE, {**ONCE, "starts_at": None}),
        ("set_freeze", ONCE, {**ONCE, "ends_at": None}),
        ("set_freeze", ONCE, {**ONCE, **NIGHT}),
        ("set_freeze", ONCE, {**ONCE, "ends_at": ONCE["starts_at"]}),
        ("set_freeze", {**NIGHT, "cron": None, "duration_seconds": 60}, {**NIGHT, "duration_seconds": "60"}),
        ("set_freeze", {**NIGHT, "duration_seconds": 2_678_400}, {**NIGHT, "duration_seconds": 2_678_401}),
        ("set_freeze", NIGHT, {**ONCE, "duration_seconds": 3600}),
        ("set_freeze", NIGHT, {**NIGHT, "ends_at": ONCE["ends_at"]}),
        ("set_freeze", ONCE, {**ONCE, "cron": NIGHT["cron"]}),
        ("set_freeze", ONCE, {**NIGHT, "duration_seconds": None, "ends_at": ONCE["ends_at"]}),
        ("set_freeze", {"cron": "0 22" + " " * 190 + "* * *"}, {"cron": "0 22" + " " * 192 + "* * *"}),
        ("set_freeze", {"time_zone": "z" * 100}, {"time_zone": "z" * 101}),
        ("set_freeze", {"deployments": ["web-*"] * 1000}, {"deployments": ["web-*"] * 1001}),
        ("set_freeze", {"deployments": ["w" * 54 + "*"]}, {"deployments": ["w" * 55]}),
        ("set_freeze", {"deployments": ["w", "w*"]}, {"deployments": ["*"]}),
        ("set_freeze", {"groups": ["shop"] * 1000}, {"groups": ["shop"] * 1001}),
        ("set_group", {"deployments": NAMES[:1000]}, {"deployments": NAMES}),
        ("set_group", {"deployments": ["web"]}, {"deployments": []}),
        ("set_group", {"deployments": ["web", "api"]}, {"deployments": ["web", "api", "web"]}),
        ("set_group", {"most_at_once": 1}, {"most_at_once": 0}),
        ("set_group", {"most_at_once": 1000}, {"most_at_once": 1001}),
        ("set_group", {"most_at_once": 2}, {"most_at_once": "2"}),
        *((f"{verb}_host", {"host": "h"}, {"host": ""}) for verb in ("forget", "drain", "undrain")),
        *((f"{verb}_host", {"host": "h" * 63}, {"host": "h" * 64}) for verb in ("forget", "drain", "undrain")),
        ("restart", {"through_freeze": True, "reason": "a leak"}, {"through_freeze": True}),
        ("restart", {"through_freeze": False}, {"through_freeze": True, "reason": ""}),
        ("rolling_update", {"image": "w"}, {"image": ""}),
        ("rolling_update", {"spec": SERVE}, {"spec": SERVE, "image": "web:2"}),
        ("rolling_update", {"spec": SERVE}, {"spec": SERVE, "command": ["serve"]}),
        ("rolling_update", {"spec": SERVE, "values_of": "v1"}, {"values_of": "v1"}),
        ("rolling_update", {"image": "web:2", "command": ["serve"]}, {"image": "web:2", "values_of": "v1"}),
        ("set_maintenance", {"state": "on", "page": "p"}, {"state": "off", "page": "p"}),
        ("set_maintenance", {"retry_after_seconds": 604_800}, {"retry_after_seconds": 604_801}),
        ("set_maintenance", {"allow": "x" * 1000}, {"allow": "x" * 1001}),
        ("report_route", {"address": "10.0.0.7:80"}, {"address": "a." * 150 + "b:80"}),
        ("report_route", {"detail": "d" * 1000}, {"detail": "d" * 1001}),
        ("report_route", {"status": "stopped"}, {"status": "degraded"}),
        ("set_traffic", {"hosts": ["*.example.com"] * 100}, {"hosts": ["*.example.com"] * 101}),
        ("set_traffic", {"request_timeout_seconds": 0.001}, {"request_timeout_seconds": 0.0004}),
        ("set_traffic", {"request_timeout_seconds": 86_400}, {"request_timeout_seconds": 86_400.1}),
        ("set_maintenance", {"page": "p" * 65_536}, {"page": "p" * 65_537}),
        ("set_maintenance", {"page": "ü" * 32_768}, {"page": "ü" * 32_769}),
        ("set_maintenance", {"allow": "x-in"}, {"allow": "x in"}),
        ("set_maintenance", {"allow": "x-in: yes"}, {"allow": "x-in:"}),
        ("set_maintenance", {"retry_after_seconds": 1}, {"retry_after_seconds": 0}),
        ("set_maintenance", {"state": "off"}, {"state": "off", "allow": "x-in"}),
        ("set_autoscaling_rules", {"rules": [RULE] * 20}, {"rules": [RULE] * 21}),
        ("push_metric", {"metric": "m" * 200}, {"metric": "m" * 201}),
        ("push_metric", {"value": -1.5}, {"value": float("nan")}),
    ],
)
def test_the_limits_of_a_command(command: str, taken: dict[str, Any], refused: dict[str, Any]) -> None:
    expect_a_limit(command, taken, refused)


def test_every_command_that_is_declared_can_be_sent() -> None:
    def declared(command: type[Command]) -> set[type[Command]]:
        return {command}.union(*map(declared, command.__subclasses__()))

    assert set(COMMANDS.values()) == {command for command in declared(Command) if "task" in vars(command)}


def test_what_a_command_leaves_open() -> None:
    everywhere = {"request_id": "r", "actor": "unknown", "reason": "", "schema_version": 1, "deployment": "web"}
    assert ask("create_deployment").model_dump() == {**everywhere, "desired_replicas": 1, "policy": None}
    assert ask("activate_revision").model_dump() == {
        **everywhere,
        "expected_version": None,
        "revision": "v1",
        "supersede": False,
        "desired_replicas": None,
        "through_freeze": False,
    }


@pytest.mark.parametrize(
    ("command", "left_out"),
    [
        ("add_revision", {"name": None, "values_of": None}),
        ("set_traffic", {"with_rollout": False, "expected_version": None}),
        ("set_maintenance", {"page": None, "allow": None, "retry_after_seconds": 60}),
        ("scale", {"with_rollout": False}),
        ("destroy", {"force": False}),
        ("restart", {"through_freeze": False}),
        (
            "rolling_update",
            {"revision": None, "image": None, "command": (), "spec": None, "values_of": None, "supersede": False},
        ),
        ("promote", {"full": False}),
        ("abort", {"now": False}),
        ("undo", {"revision": None, "anyway": False, "now": False}),
        ("retry", {"now": False, "through_freeze": False}),
        ("report_route", {"address": None, "detail": ""}),
        ("set_freeze", {"time_zone": "UTC", "starts_at": None, "ends_at": None, "groups": (), "pauses": False}),
        ("set_group", {"most_at_once": None, "in_order": False}),
    ],
)
def test_what_is_left_out_has_its_documented_meaning(command: str, left_out: dict[str, Any]) -> None:
    assert ask(command).model_dump().items() >= left_out.items()


@pytest.mark.parametrize(
    ("change", "changes"),
    [
        ({}, False),
        ({"revision": "v2"}, False),
        ({"image": "web:2"}, True),
        ({"command": ["serve"]}, True),
        ({"spec": SERVE}, True),
    ],
)
def test_an_update_changes_the_content_or_only_names_a_revision(change: dict[str, Any], *, changes: bool) -> None:
    assert ask("rolling_update", **change).changes is changes


@pytest.mark.parametrize("query", QUERIES)
def test_the_limits_of_a_query(query: str) -> None:
    given = (
        {"rollout_id": "0199c3d2-5f1e-7c41-9a02-3b1f6a7d8e90"}
        if query == "rollway.get_rollout"
        else {"deployment": "web"}
    )
    assert (parse_query(query, given).actor, parse_query(query, given).schema_version) == ("unknown", 1)
    for taken, refused in (("a", ""), ("a" * 200, "a" * 201)):
        assert parse_query(query, {**given, "actor": taken}).actor == taken
        with pytest.raises(InvalidInputError, match="actor: "):
            parse_query(query, {**given, "actor": refused})
    for version in (0, 2):
        with pytest.raises(InvalidInputError, match="schema_version: "):
            parse_query(query, {**given, "schema_version": version})


def test_rollways_own_undo_of_a_revision_that_answers_nobody_has_one_id_for_each_rollout() -> None:
    undone = Undo.of_no_answers("0199", "web", "v1", "v2 answers nobody")
    assert undone.model_dump() == ask("undo").model_dump() | {
        "request_id": "unanswered:0199",
        "actor": "rollway",
        "reason": "v2 answers nobody",
        "deployment": "web",
        "revision": "v1",
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_what_it_does_not_know(command: str) -> None:
    with pytest.raises(InvalidInputError, match="colour: there is no such field; "):
        ask(command.removeprefix("rollway."), colour="red")


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_refuses_what_it_does_not_know(query: str) -> None:
    with pytest.raises(InvalidInputError, match="colour: there is no such field; "):
        parse_query(query, {"colour": "red"})


@pytest.mark.parametrize(
    ("command", "given"),
    [
        ("add_revision", {"spec": {"command": ["serve"], "colour": "red"}}),
        ("add_revision", check(colour="red")),
        ("add_revision", docker(colour="red")),
        ("add_revision", docker(resources={"colour": "red"})),
        ("add_revision", external(task="t", colour="red")),
        ("set_autoscaling_rules", rule(colour="red")),
    ],
)
def test_every_section_refuses_what_it_does_not_know(command: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="colour: there is no such field; "):
        ask(command, **given)


def test_a_command_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(UnknownCommandError, match=r"rollway.destory is no command; .* rollway.destroy, "):
        parse_command("rollway.destory", {})


@pytest.mark.parametrize(
    ("command", "field", "given"),
    [
        ("pause", "request_id", {"request_id": "\0"}),
        ("create_deployment", "policy.spec.name", {"policy": {"spec": {"name": "\0"}}}),
        ("create_deployment", "policy.steps.1", {"policy": {"steps": ["a", "\0", "b"]}}),
        ("create_deployment", "policy.a\ufffd", {"policy": {"a\0": 1}}),
        ("add_revision", "spec.env.KEY", {"spec": {"command": ["serve"], "env": {"OTHER": "", "KEY": "\0"}}}),
        ("add_revision", "spec.command.1", {"spec": {"command": ["serve", "\0"]}}),
    ],
)
def test_a_text_with_the_character_nul_is_refused_at_its_field(command: str, field: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="cannot contain the character NUL") as refused:
        ask(command, **given)
    assert refused.value.detail == {"field": field}


@pytest.mark.parametrize(
    ("command", "field", "given"),
    [
        ("pause", "\ufffd", {"\udc00": 1}),
        ("create_deployment", "policy.spec.\ufffd", {"policy": {"spec": {"\ud800": "a"}}}),
        ("add_revision", "spec.env.\ufffd", {"spec": {"command": ["serve"], "env": {"\ud800": ""}}}),
    ],
)
def test_half_a_surrogate_pair_is_refused_at_its_field(command: str, field: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match="half of a surrogate pair") as refused:
        ask(command, **given)
    assert refused.value.detail == {"field": field}


def nested(levels: int) -> dict[str, Any]:
    return {"a": nested(levels - 1)} if levels else {}


def test_what_is_nested_too_deeply_is_refused() -> None:
    assert ask("create_deployment", policy=nested(31))
    for levels in (32, 300, 900):
        with pytest.raises(InvalidInputError, match="nested more than 32 levels deep"):
            ask("create_deployment", policy=nested(levels))


def test_numbers_that_json_does_not_know_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"policy.spec.most: must be a finite number"):
        ask("create_deployment", policy={"spec": {"most": float("inf")}})


def test_a_command_that_is_too_large_is_refused_by_the_name_of_its_largest_part() -> None:
    room = MOST_COMMAND_BYTES - len(
        ask("add_revision", spec={"command": ["serve"], "env": {"A": ""}}).model_dump_json()
    )
    assert ask("add_revision", spec={"command": ["serve"], "env": {"A": "x" * room}})
    said = r"^spec.env.A: the command has 262,145 bytes, and 262,144 are the most"
    with pytest.raises(TooLargeError, match=said) as refused:
        ask("add_revision", spec={"command": ["serve"], "env": {"A": "x" * (room + 1)}})
    assert refused.value.detail == {"field": "spec.env.A"}
    many = {f"NAME_{number}": "x" * 10 for number in range(15_000)}
    with pytest.raises(TooLargeError, match=r"^spec.env: the command has ") as refused:
        ask("add_revision", spec={"command": ["serve"], "env": many})
    assert refused.value.as_json()["code"] == "too_large"


@pytest.mark.parametrize(
    ("command", "env", "part"),
    [
        (["serve"], {"A": 140_000, "B": 140_000}, "spec.env"),
        (["serve"], {"A": 120_000, "B": 90_000, "C": 90_000}, "spec.env"),
        (["serve"], {"A": 150_000, "B": 140_000}, "spec.env.A"),
        (["serve", "x" * 270_000, "y"], {}, "spec.command.1"),
        (["serve", "x" * 140_000, "y"], {"A": 140_001}, "spec"),
    ],
)
def test_the_large_part_is_the_deepest_that_is_more_than_half_of_its_whole(
    command: list[str], env: dict[str, int], part: str
) -> None:
    spec = {"command": command, "env": {name: "x" * size for name, size in env.items()}}
    with pytest.raises(TooLargeError) as refused:
        ask("add_revision", spec=spec)
    assert refused.value.detail == {"field": part}


@pytest.mark.parametrize("word", ["reason", "actor"])
def test_words_for_people_are_texts(word: str) -> None:
    with pytest.raises(InvalidInputError, match=f"^{word}: must be text; put it in quotes$"):
        ask("pause", **{word: 3})


def test_words_for_people_are_kept_without_what_cannot_be_stored_or_shown() -> None:
    words = {"actor": "ann\0", "reason": "\x1b]0;owned\x07 \ud800\r\nfor the sale"}
    paused = ask("pause", **words)
    assert (paused.actor, paused.reason) == ("ann\ufffd", "\ufffd]0;owned\ufffd \ufffd\nfor the sale")
    assert ask("report_route", detail="\0").detail == "\ufffd"


def test_numbers_and_nothing_are_no_texts() -> None:
    assert ask("create_deployment", policy={"a": 0, "b": None, "c": [1.5], "d": ""}).policy["c"] == [1.5]


def test_a_freeze_for_a_duration_begins_now_and_others_keep_their_window() -> None:
    by_cron = SetFreeze(request_id="r", freeze="night", **NIGHT)
    from_now_on = by_cron.model_copy(update={"cron": None}).with_window(NOW)
    assert (from_now_on.starts_at, from_now_on.ends_at) == (NOW, NOW + timedelta(hours=1))
    assert from_now_on.duration_seconds is None
    assert by_cron.with_window(NOW) == by_cron
    once = SetFreeze(request_id="r", freeze="xmas", **ONCE)
    assert once.with_window(NOW) == once


def test_a_size_is_answered_by_the_names_that_programs_read() -> None:
    scaled = Scaled.model_validate(
        {"deployment": "web", "version": 2, "rollout_id": None, "already": False, "from": 3, "to": 5}
    )
    assert scaled.model_dump(by_alias=True).items() >= {"from": 3, "to": 5, "noted": None, "answering": None}.items()
    with pytest.raises(ValidationError, match="colour"):
        Scaled.model_validate({**scaled.model_dump(by_alias=True), "colour": "red"})
