"""Revisions: the name that their content gives them, and what is refused."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.revision import RevisionSpec, revision_name

SERVE: dict[str, Any] = {"command": ["serve", "--fast"], "env": {"B": "2", "A": "1"}, "health_check": {"path": "/up"}}


def named(spec: dict[str, Any]) -> str:
    return revision_name("web", RevisionSpec.model_validate(spec))


def test_a_revision_is_named_after_its_deployment_and_content() -> None:
    prefix, _, digest = named(SERVE).rpartition("-")
    assert prefix == "web"
    assert len(digest) == 8
    assert set(digest) <= set("0123456789abcdef")


def test_the_name_is_the_sha_256_of_the_canonical_json() -> None:
    text = RevisionSpec.model_validate(SERVE).canonical_json()
    assert text.startswith('{"command":["serve","--fast"],')
    assert named(SERVE) == f"web-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@given(st.permutations(list(SERVE)), st.permutations(["A", "B"]))
def test_key_order_does_not_matter(keys: list[str], variables: list[str]) -> None:
    shuffled = {key: SERVE[key] for key in keys}
    shuffled["env"] = {name: SERVE["env"][name] for name in variables}
    assert named(shuffled) == named(SERVE)


@pytest.mark.parametrize(
    "same",
    [
        {"command": "serve --fast"},
        {"runtime": "process"},
        {"drain_seconds": 2},
        {"drain_seconds": 2.0, "stop_grace_seconds": 10},
        {"health_check": {"path": "/up", "interval_seconds": 5}},
    ],
)
def test_what_means_the_same_has_the_same_name(same: dict[str, Any]) -> None:
    assert named({**SERVE, **same}) == named(SERVE)


@pytest.mark.parametrize(
    "other",
    [
        {"command": ["serve", "--slow"]},
        {"command": ["--fast", "serve"]},
        {"command": ["serve --fast"]},
        {"env": {"A": "2", "B": "1"}},
        {"env": {}},
        {"health_check": None},
        {"drain_seconds": 3},
        {"working_directory": "/srv"},
    ],
)
def test_what_means_something_else_has_another_name(other: dict[str, Any]) -> None:
    assert named({**SERVE, **other}) != named(SERVE)


def test_canonical_json_is_compact_sorted_and_reads_back() -> None:
    spec = RevisionSpec.model_validate({**SERVE, "env": {"GREETING": "grüezi"}})
    text = spec.canonical_json()
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert "grüezi" in text
    assert RevisionSpec.model_validate_json(text) == spec


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({}, "command"),
        ({"command": []}, "command"),
        ({"command": ""}, "command"),
        ({"command": "serve 'unfinished"}, "command"),
        ({"command": ["serve"], "comand": 1}, "comand"),
        ({"command": ["serve"], "env": {"A": 1}}, "env.A"),
        ({"command": ["serve"], "drain_seconds": -1}, "drain_seconds"),
        ({"command": ["serve"], "drain_seconds": float("inf")}, "drain_seconds"),
        ({"command": ["serve"], "drain_seconds": float("nan")}, "drain_seconds"),
        ({"command": ["serve"], "health_check": {"path": "up"}}, "health_check.path"),
        ({"command": ["serve"], "runtime": "magic"}, "runtime"),
        (
            {"command": ["serve"], "health_check": {"initial_delay_seconds": 60, "start_deadline_seconds": 60}},
            "health_check",
        ),
    ],
)
def test_a_wrong_spec_is_refused_at_the_field(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        RevisionSpec.model_validate(wrong)
    assert field in {".".join(str(part) for part in fault["loc"]) for fault in refused.value.errors()}
