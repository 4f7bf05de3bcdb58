"""Revisions: the name that their content gives them, and what is refused."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from domain.revisions.revision import RevisionSpec, revision_name

CACHES = "docker.cache_volumes"
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


def test_a_name_never_changes_once_given() -> None:
    """These were given when `process` was the only runtime."""
    assert named(SERVE) == "web-b9ba2e80"
    assert named({"command": ["sleep", "60"]}) == "web-1ffc10c8"


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


@pytest.mark.parametrize(
    ("section", "same"),
    [
        ({}, {"port": 8080}),
        ({}, {"resources": {}, "pull": "missing", "stop_signal": "SIGTERM", "network": None}),
        ({"resources": {"memory": "512m"}}, {"resources": {"memory": 536870912}}),
        ({"resources": {"memory": "1.5g"}}, {"resources": {"memory": "1536M"}}),
        ({"network": "host"}, {"network": "host", "port": None}),
    ],
)
def test_what_means_the_same_to_docker_has_the_same_name(section: dict[str, Any], same: dict[str, Any]) -> None:
    spec, other = (docker(image="web:1", **given) for given in (section, same))
    assert named(spec) == named(other)
    assert named(spec) != named(docker(image="web:2", **section))


@pytest.mark.parametrize(
    "spec",
    [
        {"runtime": "docker", "docker": {"image": "web:1"}},
        {"runtime": "docker", "command": "serve", "docker": {"image": "web:1", "network": "host"}},
        {"runtime": "docker", "working_directory": "/app", "docker": {"image": "web:1", "volumes": {"/a": "/b"}}},
        {"runtime": "external", "external": {"webhook": "https://example.com/replicas"}},
        {"runtime": "external", "external": {"task": "fleet.replica", "queue": "gpu"}},
    ],
)
def test_a_spec_of_every_runtime_reads_back(spec: dict[str, Any]) -> None:
    read = RevisionSpec.model_validate(spec)
    assert RevisionSpec.model_validate_json(read.canonical_json()) == read
    assert RevisionSpec.model_validate(read.model_dump()) == read
    assert named(spec) == revision_name("web", RevisionSpec.model_validate_json(read.canonical_json()))


def docker(**section: Any) -> dict[str, Any]:
    return {"runtime": "docker", "docker": section}


def external(**section: Any) -> dict[str, Any]:
    return {"runtime": "external", "external": section}


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({}, "command", "required with runtime 'process'"),
        ({"command": ["serve"], "docker": {"image": "web:1"}}, "docker", "or set runtime: docker"),
        ({"command": ["serve"], "external": {"task": "a"}}, "external", "or set runtime: external"),
        ({"runtime": "docker"}, "docker", "required with runtime 'docker', such as {image"),
        ({"runtime": "external"}, "external", "required with runtime 'external', such as {webhook"),
        (external(task="a") | {"docker": {"image": "web:1"}}, "docker", "this one is 'external'"),
        (external(task="a") | {"command": "serve"}, "command", "must be left out with runtime 'external'"),
        (external(task="a") | {"hosts": {"zone": "a"}}, "hosts", "must be left out with runtime 'external'"),
        (external(task="a") | {"spread": "zone"}, "spread", "must be left out with runtime 'external'"),
        ({"command": "serve", "hosts": {"zone": "a b"}}, "hosts.zone", "'a b' is refused: a label and its value are"),
        (external(task="a") | {"working_directory": "/a"}, "working_directory", "must be left out"),
        (external(), "external", "needs one of webhook"),
        (external(task="a", webhook="http://a"), "external", "needs one of webhook"),
        (external(webhook="http://a", queue="b"), "external", "queue belongs to task"),
        (external(webhook="ftp://a"), "external.webhook", "must be a URL such as"),
        (external(webhook="http://"), "external.webhook", "must be a URL such as"),
        (external(webhook="http://a:70000"), "external.webhook", "ort"),
        (docker(image="web:1") | {"working_directory": "app"}, "working_directory", "absolute folder of the container"),
        (docker(image="web:1") | {"command": []}, "command", "at least 1"),
        ({"runtime": "magic", "docker": {"image": "web:1"}}, "runtime", "'process', 'docker' or 'external'"),
        (docker(), "docker.image", "required"),
        (docker(image="--help"), "docker.image", "pattern"),
        (docker(image="a b"), "docker.image", "pattern"),
        (docker(image="a", port=0), "docker.port", "greater than or equal to 1"),
        (docker(image="a", network="none"), "docker.network", "nobody could reach the replica"),
        (docker(image="a", network="host", port=80), "docker.network", "leave port out"),
        (docker(image="a", labels={"rollway.route": "x"}), "docker.labels", "Rollway's own"),
        (docker(image="a", pull="sometimes"), "docker.pull", "'missing', 'always' or 'never'"),
        (docker(image="a", stop_signal="15"), "docker.stop_signal", "pattern"),
        (docker(image="a", resources={"memory": "512q"}), "docker.resources.memory", "such as '512m'"),
        (docker(image="a", resources={"memory": "1m"}), "docker.resources.memory", "6291456"),
        (docker(image="a", resources={"cpus": 0}), "docker.resources.cpus", "0.01"),
        (docker(image="a", volumes={"./models": "/models"}), "docker.volumes", "must be an absolute folder"),
        (docker(image="a", volumes={"/models": "models"}), "docker.volumes", "must be an absolute folder"),
        (
            docker(image="a", cache_volumes={"c": "cache"}),
            "docker.cache_volumes",
            "an absolute folder of the container",
        ),
        (docker(image="a", cache_volumes={"c": "/"}), CACHES, "an absolute folder of the container"),
        (
            docker(image="a", cache_volumes={"c": "/c:rw"}),
            "docker.cache_volumes",
            "an absolute folder of the container",
        ),
        (docker(image="a", cache_volumes={"/srv": "/c"}), CACHES, "must be a name of letters"),
        (docker(image="a", cache_volumes={"c": "/c", "d": "/c/"}), CACHES, "folder of another volume"),
        (
            docker(image="a", volumes={"/m": "/c"}, cache_volumes={"c": "/c"}),
            "docker.cache_volumes",
            "of another volume",
        ),
        (
            docker(image="a", volumes={"./a": "/b"}, cache_volumes={"c": "/c"}),
            "docker.volumes",
            "must be an absolute folder",
        ),
        (
            {"command": ["a"], **docker(image="a", cache_volumes={"c": "/c"}), "runtime": "process"},
            "docker",
            "runtime 'docker'",
        ),
    ],
)
def test_what_does_not_fit_its_runtime_is_refused_with_what_would_be_right(
    wrong: dict[str, Any], field: str, said: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        RevisionSpec.model_validate(wrong)
    faults = {".".join(str(part) for part in fault["loc"]): fault["msg"] for fault in refused.value.errors()}
    assert field in faults
    assert said in faults[field]
    assert len(faults) == 1, "one mistake is told once"


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
