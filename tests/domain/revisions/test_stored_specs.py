"""The content of a revision as it is stored: read by this release, kept for the end of replicas, and changed."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from domain.revisions.revision import (
    RevisionExistsError,
    RevisionSpec,
    StoredSpec,
    WrittenSpec,
    changed_spec,
    is_same,
    stored_spec,
)
from domain.revisions.runtime_spec import ExternalSpec
from domain.text.errors import InvalidInputError

SERVE: dict[str, Any] = {"command": ["serve"], "env": {"A": "1"}, "drain_seconds": 4.0}
IMAGE: dict[str, Any] = {"runtime": "docker", "docker": {"image": "web:1", "port": 80, "labels": {"a": "b"}}}
HOOK = "https://example.com/replicas"


def read(**raw: Any) -> RevisionSpec:
    return RevisionSpec.model_validate(raw)


def test_what_this_release_reads_is_read_and_a_field_of_a_later_one_is_left_out() -> None:
    assert stored_spec(json.dumps({**SERVE, "colour": "green"})) == StoredSpec(read(**SERVE))


@pytest.mark.parametrize(
    ("raw", "runtime", "external"),
    [
        ({"runtime": "vm", "external": {"webhook": HOOK}}, "vm", ExternalSpec(webhook=HOOK)),
        ({"runtime": "vm", "external": {"task": "t", "queue": "q", "new": 1}}, "vm", ExternalSpec(task="t", queue="q")),
        ({"runtime": "vm", "external": {"letter": "box"}}, "vm", None),
        ({"runtime": "vm", "external": None}, "vm", None),
        ({"runtime": "vm"}, "vm", None),
        ({"drain": "at dusk"}, "process", None),
        ([], "process", None),
        ("serve", "process", None),
    ],
)
def test_of_what_cannot_be_read_the_runtime_stays_and_whom_to_ask_for_the_end(
    raw: object, runtime: str, external: ExternalSpec | None
) -> None:
    stored = stored_spec(json.dumps(raw))
    assert (stored.spec.runtime, stored.spec.external) == (runtime, external)
    assert stored.unreadable is not None
    assert stored.unreadable.startswith("this release of Rollway cannot read its revision: revision")


@pytest.mark.parametrize(
    ("stored", "same"),
    [
        (SERVE, True),
        ({**SERVE, "hosts": {}, "spread": "host"}, True),
        ({**SERVE, "command": ["serve", "--slow"]}, False),
        ({**SERVE, "runtime": "vm"}, False),
    ],
)
def test_a_content_is_the_same_where_fields_that_it_lacks_have_their_defaults(
    stored: dict[str, Any], *, same: bool
) -> None:
    assert is_same(stored, read(**SERVE)) is same


@pytest.mark.parametrize(
    ("before", "image", "command", "after"),
    [
        (SERVE, None, ["serve", "--fast"], {**SERVE, "command": ["serve", "--fast"]}),
        (SERVE, None, [], SERVE),
        (IMAGE, "web:2", [], {**IMAGE, "docker": {**IMAGE["docker"], "image": "web:2"}}),
        (IMAGE, None, ["serve"], {**IMAGE, "command": ["serve"]}),
        (
            {**IMAGE, "command": ["serve"]},
            "web:2",
            ["work"],
            {**IMAGE, "command": ["work"], "docker": {**IMAGE["docker"], "image": "web:2"}},
        ),
    ],
)
def test_a_changed_revision_is_as_it_was_but_for_its_image_or_command(
    before: dict[str, Any], image: str | None, command: list[str], after: dict[str, Any]
) -> None:
    assert changed_spec("v1", StoredSpec(read(**before)), image, command) == read(**after)


@pytest.mark.parametrize(
    ("stored", "image", "command", "message", "field"),
    [
        (StoredSpec(read(**SERVE), "a later release"), None, ["serve"], "v1: a later release", "revision"),
        (
            StoredSpec(read(**SERVE)),
            "web:2",
            [],
            "image: v1 runs with runtime 'process', which has no image; a command changes what it runs",
            "image",
        ),
        (
            StoredSpec(read(**IMAGE)),
            "--help",
            [],
            "docker.image: must be the name of an image, such as",
            "docker.image",
        ),
        (StoredSpec(read(**SERVE)), None, [""], "command: must begin with the program to run", "command"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused_at_its_field(
    stored: StoredSpec, image: str | None, command: list[str], message: str, field: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        changed_spec("v1", stored, image, command)
    assert refused.value.message.startswith(message)
    assert refused.value.detail["field"] == field


def test_a_revision_that_exists_with_another_content_is_named() -> None:
    assert RevisionExistsError.of("web", "v1").detail == {"deployment": "web", "revision": "v1"}


@pytest.mark.parametrize(
    "spec",
    [
        {**IMAGE, "user": None, "external": None, "command": None, "working_directory": None},
        {**SERVE, "docker": None, "external": None, "prepare": None},
        {"runtime": "external", "external": {"webhook": HOOK}, "docker": None, "user": None, "command": None},
        {"runtime": "external", "external": {"webhook": HOOK}, "hosts": {}, "spread": "host", "needs": {}},
        {"runtime": "external", "external": {"webhook": HOOK}, "prepare": None},
        {**IMAGE, "prepare": {"image": True}, "working_directory": "/app"},
        {**SERVE, "user": "ann", "working_directory": "app", "prepare": {"command": "fetch"}},
        {**SERVE, "needs": {"gpu": 1, "memory_gb": 40}},
        {**SERVE, "needs": {"memory_gb": 40}, "env": {"CUDA_VISIBLE_DEVICES": "0"}},
        {**IMAGE, "needs": {"gpu": 1}},
        {"runtime": "docker", "docker": {"image": "web:1", "resources": {"gpus": 1}}, "needs": {"memory_gb": 40}},
    ],
)
def test_what_goes_together_is_taken_as_it_is_written(spec: dict[str, Any]) -> None:
    for kind in (RevisionSpec, WrittenSpec):
        taken = kind.model_validate(spec).model_dump(mode="json")
        assert {name: taken[name] for name in spec if name not in ("docker", "external", "prepare")} == {
            name: value for name, value in spec.items() if name not in ("docker", "external", "prepare")
        }
        for section in ("docker", "external", "prepare"):
            assert bool(taken[section]) is bool(spec.get(section))


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({**IMAGE, "user": "ann"}, "user: belongs to runtime 'process', and this one is 'docker': leave it out"),
        (
            {"runtime": "external", "external": {"webhook": HOOK}, "user": "ann"},
            "user: belongs to runtime 'process', and this one is 'external': leave it out",
        ),
        (
            {"runtime": "external", "external": {"webhook": HOOK}, "needs": {"gpu": 1}},
            "needs: must be left out with runtime 'external': that system chooses where its replicas run",
        ),
        (
            {"runtime": "external", "external": {"webhook": HOOK}, "prepare": {"command": "fetch"}},
            "prepare: must be left out with runtime 'external': the other system prepares its own hosts",
        ),
        (
            {**IMAGE, "docker": {"image": "web:1", "resources": {"gpus": "all"}}, "needs": {"gpu.h100": 1}},
            "needs: gpu.h100: leave docker.resources.gpus out: a replica gets the devices that it needs",
        ),
        (
            {**SERVE, "needs": {"memory_gb": 40, "gpu": 1}, "env": {"CUDA_VISIBLE_DEVICES": "0"}},
            "needs: gpu: leave CUDA_VISIBLE_DEVICES out of env: Rollway sets it to the devices of each replica",
        ),
        ({**SERVE, "env": {"A": 1}, "needs": {"gpu": 1}}, "env.A: must be text; put it in quotes"),
        (
            {"runtime": "external", "external": {"task": "t"}, "env": {"A": "1", "B": {"secret": "env:B"}}},
            "env: B: runtime 'external' takes no references: that system has secrets of its own",
        ),
    ],
)
def test_what_does_not_go_together_is_told_once(spec: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValidationError) as refused:
        RevisionSpec.model_validate(spec)
    assert InvalidInputError.of(refused.value, model=RevisionSpec).message == fault


@pytest.mark.parametrize("command", ["a && b", ["a", "$PORT"], None])
def test_the_image_of_a_container_may_have_a_shell(command: object) -> None:
    spec = {**IMAGE, "command": command, "prepare": {"command": "a && b"}, "env": {"A": "$x"}}
    written = WrittenSpec.model_validate(spec)
    assert written.prepare is not None
    assert written.prepare.command == ("a", "&&", "b")
    assert bool(written.command) is bool(command)


def test_what_a_person_wrote_down_is_the_content_without_the_name() -> None:
    class Named(WrittenSpec):
        name: str | None = None

    assert Named.model_validate({**SERVE, "name": "v1"}).spec == read(**SERVE)
