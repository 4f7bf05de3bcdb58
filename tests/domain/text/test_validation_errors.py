"""Wrong fields, and what the refusal says would be right there."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from domain.commands.apply.document import ToApply
from domain.commands.fields import model_schema
from domain.commands.registry import COMMANDS, parse_command
from domain.strategies.builtin import STRATEGIES, parse_policy
from domain.text.errors import InvalidInputError
from domain.text.validation_errors import fault_of

HEADER = {"request_id": "r1"}
LONG = "a" * 60


@pytest.mark.parametrize(
    ("task", "given", "sentence", "field"),
    [
        ("scale", {"deployment": "web"}, "desired_replicas: is missing", "desired_replicas"),
        (
            "create_deployment",
            {"deployment": LONG},
            "deployment: must be lower-case letters, digits, '-' and '.', 54 at most",
            "deployment",
        ),
        (
            "activate_revision",
            {"deployment": "web", "revision": "V 1"},
            "revision: must be lower-case letters, digits, '-' and '.', 63 at most",
            "revision",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "health_check": {"pathh": "/"}}},
            "spec.health_check.pathh: there is no such field; did you mean path?",
            "spec.health_check.pathh",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "health_check": "/healthz"}},
            (
                "spec.health_check: must be fields, each with its value, such as {path: /healthz}; the fields are "
                "path, protocol, service, host, interval_seconds, timeout_seconds, success_threshold, "
                "failure_threshold, initial_delay_seconds, start_deadline_seconds"
            ),
            "spec.health_check",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "health_check": {"path": "healthz"}}},
            "spec.health_check.path: must begin with '/', such as /health",
            "spec.health_check.path",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "stop_grace_seconds": "10s"}},
            "spec.stop_grace_seconds: must be a number of seconds, without a unit, such as 10",
            "spec.stop_grace_seconds",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "port": 80}},
            (
                "spec.port: there is no such field; each replica gets a port of its own, as {port} in 'command' "
                "and as PORT in its environment"
            ),
            "spec.port",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": "serve 'it"}},
            "spec.command: has a quote that is not closed; as a list no quotes are needed: [python, serve.py]",
            "spec.command",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "env": ["A=1"]}},
            "spec.env: must be names, each with its value, such as {NAME: value}",
            "spec.env",
        ),
        (
            "set_freeze",
            {"freeze": "night", "cron": "0 22 * *", "duration_seconds": 3600},
            "cron: must be a cron line of five fields, such as '0 18 * * FRI'",
            "cron",
        ),
        (
            "set_freeze",
            {"freeze": "night", "cron": "0 25 * * *", "duration_seconds": 3600},
            "cron: must be a cron line, such as '0 18 * * FRI'; bad hour",
            "cron",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"runtime": "docker", "docker": "web"}},
            "spec.docker: must be fields, each with its value",
            "spec.docker",
        ),
        (
            "set_freeze",
            {"freeze": "never", "cron": "0 0 */30 4 MON#5", "duration_seconds": 3600},
            "cron: must be a cron line that comes true some day",
            "cron",
        ),
        (
            "set_group",
            {"group": "shop", "deployments": ["web", "api", "web"]},
            "deployments names one of them twice",
            "",
        ),
        (
            "set_autoscaling_rules",
            {"deployment": "web", "rules": [{"metrik": "cpu"}]},
            "rule 1, metrik: there is no such field; did you mean metric?",
            "rules.0.metric",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "env": {"A": 1}}},
            "spec.env.A: must be text; put it in quotes",
            "spec.env.A",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "env": {False: "1"}}},
            "spec.env: a name is False, which YAML makes of NO, OFF and FALSE: put it in quotes",
            "spec.env",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "env": {True: "1"}}},
            "spec.env: a name is True, which YAML makes of YES, ON and TRUE: put it in quotes",
            "spec.env",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "env": {3: "1"}}},
            "spec.env: the name 3 must be text: put it in quotes, as in '3'",
            "spec.env",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "env": {"A=B": "1"}}},
            "must be the name of a variable: not empty, and without '=' and control characters",
            "spec.env.A=B",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "ports": [80]}},
            "spec.ports: there is no such field; each replica gets a port of its own, as {port} in 'command' and as",
            "spec.ports",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "image": "web:1"}},
            "spec.image: there is no such field; an image is run by 'runtime: docker' and 'docker: {image: ...}'",
            "spec.image",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "warm_up": {"requests": [{"path": "/", "x": 1}]}}},
            "spec.warm_up.request 1, x: there is no such field; the fields are method, path, headers, body, times, ",
            "spec.warm_up.requests.0.x",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "health_check": ["/up"]}},
            "spec.health_check: must be fields, each with its value; the fields are path, protocol, ",
            "spec.health_check",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "drain_seconds": []}},
            "spec.drain_seconds: must be a number, such as 1.5",
            "spec.drain_seconds",
        ),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "env": {"A=B": "1"}}},
            "spec.env.A=B: must be the name of a variable",
            "spec.env.A=B",
        ),
        ("set_traffic", {"deployment": "web", "pages": {"200": "ok"}}, "pages.200: must be '502', '503'", "pages.200"),
        (
            "add_revision",
            {"deployment": "web", "spec": {"command": ["serve"], "warm_up": {"requests": ["/a"]}}},
            "must be fields, each with its value, such as {path: /a}; the fields are method, path",
            "spec.warm_up.requests.0",
        ),
        (
            "set_traffic",
            {"deployment": "web", "hosts": ["a.example.com"], "tls": {"colour": "red"}},
            "tls.colour: there is no such field; the fields are certificate, key, ",
            "tls.colour",
        ),
        (
            "set_traffic",
            {"deployment": "web", "tls": 3},
            "tls: must be fields, each with its value; the fields are certificate, key, ",
            "tls",
        ),
        (
            "set_freeze",
            {"freeze": "night", "duration_seconds": "1h"},
            "duration_seconds: must be a number of seconds, without a unit, such as 10",
            "duration_seconds",
        ),
        ("add_revision", {"deployment": "web", "spec": []}, "spec: must be fields, each with its value", "spec"),
        (
            "set_autoscaling_rules",
            {"deployment": "web", "rules": [{"metricc": "x"}]},
            "rule 1, metricc: there is no such field; did you mean metric?",
            "rules.0.metric",
        ),
    ],
)
def test_a_wrong_field_is_named_with_what_would_be_right(
    task: str, given: dict[str, Any], sentence: str, field: str
) -> None:
    with pytest.raises(InvalidInputError) as error:
        parse_command(f"rollway.{task}", {**HEADER, **given})
    assert sentence in error.value.message
    assert str(error.value.detail["field"]).startswith(field)


@pytest.mark.parametrize(("payload", "kind"), [("web", "text"), (None, "nothing"), (["web"], "list"), (3, "number")])
def test_a_payload_that_has_no_fields_is_told_so_and_no_field_is_blamed(payload: object, kind: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        parse_command("rollway.activate_revision", payload)
    assert error.value.message == f"the payload must be fields, each with its value, and no {kind}"
    assert error.value.detail["field"] == ""


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            {"strategy": "blue_green", "spec": {"manual": True}},
            "policy.spec.manual: there is no such field; the fields are count_stopping, ",
        ),
        (
            {"strategy": "rolling_update", "spec": {"max_surg": 1}},
            "policy.spec.max_surg: there is no such field; did you mean max_surge?",
        ),
        (
            {"strategy": "recreate", "limits": {"timeout": 3}},
            "policy.limits.timeout: there is no such field; did you mean timeout_seconds?",
        ),
        ({"strateg": "recreate"}, "policy.strateg: there is no such field; did you mean strategy?"),
        ([], "policy: must be fields, each with its value"),
    ],
)
def test_a_wrong_field_of_a_policy_is_told_which_ones_there_are(given: object, sentence: str) -> None:
    with pytest.raises(InvalidInputError) as error:
        parse_policy(given)
    assert sentence in error.value.message


@pytest.mark.parametrize(
    ("policy", "faults"),
    [
        (
            {"strategy": "rolling_update", "spec": {"max_surg": 1, "max_surge": "x"}},
            ("spec.max_surge: must be a whole number of replicas", "spec.max_surg: there is no such field; did you"),
        ),
        ({"strategy": "rolling"}, ("strategy: must be one of blue_green, canary, recreate, rolling_update, not",)),
        ({"spec": {}}, ("strategy: is missing",)),
    ],
)
def test_the_faults_of_a_policy_in_a_file_have_their_own_places_there(
    policy: dict[str, Any], faults: tuple[str, ...]
) -> None:
    with pytest.raises(ValidationError) as error:
        ToApply.model_validate({"documents": [{"deployment": "api"}, {"deployment": "web", "policy": policy}]})
    refusal = InvalidInputError.of(error.value, "file", ToApply)
    field = faults[0].partition(":")[0]
    assert refusal.detail == {"field": f"file.documents.1.policy.{field}"}
    for fault in faults:
        assert f"file.document 2, policy.{fault}" in refusal.message
    assert len(refusal.faults) == len(faults)


def patterns_in(schema: object) -> Iterator[str]:
    match schema:
        case dict():
            if isinstance(schema.get("pattern"), str):
                yield schema["pattern"]
            for part in schema.values():
                yield from patterns_in(part)
        case list():
            for part in schema:
                yield from patterns_in(part)


def test_every_pattern_is_told_in_words() -> None:
    models = [*COMMANDS.values(), *(strategy.spec_model for strategy in STRATEGIES.values())]
    patterns = {pattern for model in models for pattern in patterns_in(model_schema(model))}
    told = {pattern: said_of(pattern) for pattern in patterns}
    assert len(patterns) > 10
    untold = {pattern for pattern, said in told.items() if said.startswith("is no value")}
    assert untold == {r"^(\d{1,15}(?:\.\d{1,15})?)([bkmgBKMG]?)$"}, "memory has a sentence of its own"
    assert said_of("^[0-9a-f]{1,32}$") == "must be hexadecimal digits of an id, such as 3f2a9c1b", "of a session"


def said_of(pattern: str) -> str:
    return fault_of({"type": "string_pattern_mismatch", "loc": (), "input": "", "ctx": {"pattern": pattern}}).what


@pytest.mark.parametrize(
    ("task", "given", "sentence"),
    [
        ("apply", {"documents": [{"deployment": "web"}] * 501}, "documents: has 501 items, and 500 are the most"),
        ("apply", {"documents": []}, "documents: must not be empty"),
        (
            "apply",
            {"documents": [{"deployment": "web"}, {"deployment": "api", "replicas": "x"}]},
            "document 2, replicas: must be a whole number, such as 3",
        ),
        ("undo", {"deployment": "web", "reason": "x" * 1001}, "reason: must be at most 1000 characters long"),
        ("rolling_update", {"deployment": "web", "image": ""}, "image: must not be empty"),
        ("set_traffic", {"deployment": "web", "tls": {"colour": "red"}}, "tls.colour: there is no such field"),
        ("set_maintenance", {"deployment": "web", "retry_after_seconds": "5s"}, "must be a number of seconds, without"),
        ("set_freeze", {"freeze": "night", "time_zone": 1.5}, "time_zone: must be text; put it in quotes"),
        ("add_revision", {"deployment": "web", "spec": {"runtime": "vm"}}, "must be 'process', 'docker' or 'external'"),
    ],
)
def test_what_is_too_long_or_none_of_the_choices_is_told_in_our_words(
    task: str, given: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidInputError) as error:
        parse_command(f"rollway.{task}", {**HEADER, **given})
    assert sentence in error.value.message


def test_a_fault_of_a_document_counts_from_one_and_its_field_as_programs_do() -> None:
    given = {"documents": [{"deployment": "web", "replicas": "many"}]}
    with pytest.raises(InvalidInputError) as error:
        parse_command("rollway.apply", {**HEADER, **given})
    by_line = error.value.with_lines(lambda path: 4 if path[-1] == "replicas" else None)
    assert by_line.message == "document 1, line 4, replicas: must be a whole number, such as 3"
    assert by_line.detail == error.value.detail == {"field": "documents.0.replicas"}
