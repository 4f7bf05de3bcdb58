"""References to secrets: what they look like, who must have them, and what of an environment is shown."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from pydantic import ValidationError

from domain.commands.registry import parse_command
from domain.model.deployment import Deployment
from domain.replicas.host_choice import Unplaced, place
from domain.revisions.revision import RevisionSpec, revision_name
from domain.revisions.secret_refs import MissingSecretError, SecretCheck, SecretReference, filled_in, passed_over
from domain.steering.activation import ActivationRequest, activate
from domain.steering.command_effect import Context
from domain.text.errors import InvalidInputError
from tests.support.pictures.pictures import NOW, PENDING, V1, V2, V3, deploying, resting, rolling_update
from tests.support.workers.payloads import ask, expect_a_limit

DB = "file:/run/secrets/db"


def test_a_reference_is_a_kind_and_what_that_means() -> None:
    reference = SecretReference(secret="env:A:B")
    assert (reference.kind, reference.what) == ("env", "A:B")


def variable(value: object, **more: Any) -> dict[str, Any]:
    return {"spec": {"command": ["serve"], "env": {"DB": value}, **more}}


@pytest.mark.parametrize(
    ("taken", "refused"),
    [
        (DB, "file:db"),
        (DB, "file:/run/../etc/shadow"),
        ("file:/run/..data/db", "file:/run/.."),
        (DB, "file:/run/secrets/"),
        ("file:/a b", "file:/a\nb"),
        ("file:/a b", "file:/a\x1b"),
        ("env:DB", "env:"),
        ("env:DB", "env:A=B"),
        ("command:/bin/vault read 'a b'", "command:vault read"),
        ("command:/bin/vault", "command:"),
        ("command:/bin/vault 'a'", "command:/bin/vault 'a"),
        (f"env:{'A' * 996}", f"env:{'A' * 997}"),
        (DB, "/run/secrets/db"),
        (DB, "vault:db"),
        (DB, ["file:/a"]),
    ],
)
def test_a_reference_is_taken_or_refused(taken: object, refused: object) -> None:
    expect_a_limit("add_revision", variable({"secret": taken}), variable({"secret": refused}))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("file:db", "must be an absolute path"),
        ("env:A=B", "must have a name without '='"),
        ("command:vault", "must begin with an absolute path"),
        ("vault:db", "begins with 'file:', 'env:' or 'command:'"),
    ],
)
def test_what_would_be_right_is_said(wrong: str, right: str) -> None:
    with pytest.raises(InvalidInputError, match=right):
        ask("add_revision", **variable({"secret": wrong}))


@pytest.mark.parametrize(
    "value", [{"secret": "hunter2"}, {"secret": DB, "else": "hunter2"}, ["hunter2"], {"hunter2": DB}]
)
def test_what_is_refused_is_not_quoted(value: object) -> None:
    with pytest.raises(InvalidInputError, match=r"spec\.env\.DB: ") as refused:
        parse_command("rollway.add_revision", {"request_id": "1", "deployment": "web", **variable(value)})
    assert "hunter2" not in str(refused.value)


def test_a_reference_is_read_from_fields_or_taken_as_it_is() -> None:
    reference = SecretReference(secret=DB)
    spec = RevisionSpec.model_validate({"command": ["serve"], "env": {"A": reference, "B": {"secret": DB}, "C": DB}})
    assert spec.env == {"A": reference, "B": reference, "C": DB}
    with pytest.raises(ValidationError, match="colour"):
        SecretReference.model_validate({"secret": DB, "colour": "red"})


@pytest.mark.parametrize("number", [1, 1.5, True])
def test_a_number_is_no_value_of_a_variable(number: object) -> None:
    with pytest.raises(InvalidInputError, match=r"^spec\.env\.DB: must be text; put it in quotes$"):
        ask("add_revision", **variable(number))


def test_the_other_system_has_secrets_of_its_own() -> None:
    external = {"runtime": "external", "command": None, "external": {"task": "t"}}
    expect_a_limit("add_revision", variable("1", **external), variable({"secret": DB}, **external))


def test_a_revision_is_named_by_its_references_and_one_without_any_as_before() -> None:
    plain = RevisionSpec.model_validate({"command": ["serve"], "env": {"DB": "1"}})
    assert plain.canonical_json() == (
        '{"command":["serve"],"drain_seconds":2.0,"env":{"DB":"1"},"health_check":null,"runtime":"process",'
        '"stop_grace_seconds":10.0,"working_directory":null}'
    )
    first, second = (
        RevisionSpec.model_validate({"command": ["serve"], "env": {"DB": {"secret": f"env:{name}"}}}) for name in "AB"
    )
    assert len({revision_name("web", spec) for spec in (plain, first, second)}) == 3


def test_a_spec_shows_no_value_where_it_is_logged() -> None:
    command = parse_command("rollway.add_revision", {"request_id": "1", "deployment": "web", **variable("hunter2")})
    assert "hunter2" not in repr(command)


# --- who must have them


def said(picture: str) -> tuple[SecretCheck, ...]:
    """What hosts said: 'a:db=ok b:db=no c:db=?'"""
    parsed = (word.replace("=", ":").split(":") for word in picture.split())
    return tuple(
        SecretCheck(host, f"env:{name}", answer != "?", "there is none" if answer == "no" else None)
        for host, name, answer in parsed
    )


@pytest.mark.parametrize(
    ("picture", "without"),
    [
        ("", {}),
        ("a:db=ok", {}),
        ("a:db=ok b:db=no", {"b": "env:db (there is none)"}),
        ("a:db=ok b:db=?", {"b": "env:db (it has not answered yet)"}),
        ("a:db=ok a:key=ok b:db=no b:key=?", {"b": "env:db (there is none), env:key (it has not answered yet)"}),
    ],
)
def test_hosts_that_lack_a_secret_are_passed_over_while_another_has_all(picture: str, without: dict[str, str]) -> None:
    assert passed_over("v2", said(picture)) == without


@pytest.mark.parametrize(
    ("picture", "sentence"),
    [
        ("a:db=no", "no host can run v2: host a lacks env:db (there is none)"),
        ("a:db=?", "no host can run v2: host a lacks env:db (it has not answered yet)"),
        (
            "a:db=no a:key=ok b:db=ok b:key=no",
            "host a lacks env:db (there is none); host b lacks env:key (there is none)",
        ),
        (" ".join(f"{host}:db=no" for host in "abcde"), r"host e lacks env:db (there is none)$"),
        (" ".join(f"{host}:db=no" for host in "edcba"), "^no host can run v2: host a lacks env:db"),
        (" ".join(f"{host}:db=no" for host in "abcdefg"), "host e lacks env:db (there is none); and so 2 more"),
    ],
)
def test_a_revision_that_no_host_has_the_secrets_for_is_refused(picture: str, sentence: str) -> None:
    with pytest.raises(MissingSecretError, match=sentence.replace("(", r"\(").replace(")", r"\)")):
        passed_over("v2", said(picture))


def test_the_refusal_names_the_revision_and_all_hosts_for_programs() -> None:
    with pytest.raises(MissingSecretError) as refused:
        passed_over("v2", said(" ".join(f"{host}:db=no" for host in "abcdefg")))
    assert refused.value.detail == {"revision": "v2", "hosts": "a, b, c, d, e, f, g"}


@pytest.mark.parametrize(
    ("allowed", "deployment", "paths"),
    [
        ("/run/secrets", "web", "/run/secrets"),
        ("/run/secrets", "..", "/run/secrets"),
        ("/run/{deployment}/a/{deployment}", "web", "/run/web/a/web"),
        ("/run/secrets/{deployment}", "..", None),
        ("/run/secrets/{deployment}", "a/b", None),
        ("/run/secrets/{deployment}", "", None),
    ],
)
def test_a_host_allows_paths_for_all_or_for_each_deployment_its_own(
    allowed: str, deployment: str, paths: str | None
) -> None:
    assert filled_in(allowed, deployment) == paths


WITHOUT, SOME = said("a:db=no b:db=?"), said("a:db=ok b:db=no")


def activated(
    deployment: Deployment, revision: UUID, secrets: tuple[SecretCheck, ...], **more: Any
) -> Mapping[str, object]:
    request = ActivationRequest(revision, "v2", "v2", rolling_update(), secrets=secrets, **more)
    return activate(deployment, request, Context("", NOW, uuid4())).details


@pytest.mark.parametrize(
    ("deployment", "more"),
    [
        (resting("", status=PENDING, current_revision_id=None), {}),
        (resting("■■■"), {}),
        (deploying("■■|◇"), {"supersede": True}),
    ],
    ids=["first", "begun", "superseded"],
)
def test_an_activation_that_leads_to_new_replicas_needs_a_host_that_has_the_secrets(
    deployment: Deployment, more: dict[str, Any]
) -> None:
    with pytest.raises(MissingSecretError, match="no host can run v2: host a lacks"):
        activated(deployment, V3, WITHOUT, **more)
    assert activated(deployment, V3, SOME, **more)["passed_over"] == {"b": "env:db (there is none)"}
    assert "passed_over" not in activated(deployment, V3, (), **more)


@pytest.mark.parametrize("deployment", [deploying("■■|◇"), resting("■■■", current_revision_id=V2)], ids=str)
def test_what_runs_already_is_not_refused_for_want_of_a_secret(deployment: Deployment) -> None:
    on_the_way = [replace(route, revision_id=V2) for route in deployment.routes]
    assert "passed_over" not in activated(replace(deployment, routes=tuple(on_the_way)), V2, WITHOUT)


# --- where its replicas go


@pytest.mark.parametrize(
    ("lacking", "chosen"),
    [("", "a b c a"), ("a", "b c b c"), ("a c", "b b b b"), ("a b c", "a b c a"), ("elsewhere", "a b c a")],
)
def test_replicas_go_to_hosts_that_have_their_secrets_or_else_to_any_that_says_what_is_missing(
    lacking: str, chosen: str
) -> None:
    new = [Unplaced(V1, is_external=False, lacking=lacking.split()) for _ in range(4)]
    assert place(new, ["a", "b", "c"], {}, {}) == chosen.split()
