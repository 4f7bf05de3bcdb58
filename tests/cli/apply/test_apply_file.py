"""What `rollway apply` understands, and how it says what it does not."""

import io
import json
import time
from pathlib import Path

import pytest

from api.people.strict_yaml import documents_of
from cli.apply import read_file
from cli.commands.deployments.settings_commands import yaml_of
from domain.commands.apply.document import Document
from domain.text.errors import InvalidInputError
from stack.home.folder import project_root

WEB = """
deployment: web
replicas: 3
revision:
  command: python app.py --port 80
  env: {VERSION: "1"}
policy:
  strategy: rolling_update
"""


def read(folder: Path, text: str) -> list[Document]:
    path = folder / "web.yaml"
    path.write_text(text)
    return read_file(str(path))


def fault(folder: Path, text: str) -> str:
    with pytest.raises(InvalidInputError) as refused:
        read(folder, text)
    return refused.value.message.removeprefix(str(folder) + "/")


@pytest.mark.parametrize("example", sorted((project_root() / "examples").glob("*.yaml")), ids=lambda path: path.name)
def test_the_examples_are_understood(example: Path) -> None:
    assert read_file(str(example))


def test_a_revision_without_a_name_gets_one_from_its_content(tmp_path: Path) -> None:
    (wanted,) = read(tmp_path, WEB)
    (same,) = read(tmp_path, WEB.replace('"1"', "'1'"))
    (other,) = read(tmp_path, WEB.replace('"1"', '"2"'))
    assert wanted.revision_name is not None
    assert wanted.revision_name.startswith("web-")
    assert wanted.revision_name == same.revision_name != other.revision_name


@pytest.mark.parametrize(
    ("revision", "folder"),
    [
        ("{command: serve}", "{file}"),
        ("{command: serve, working_directory: app}", "{file}/app"),
        ("{command: serve, working_directory: .}", "{file}"),
        ("{command: serve, working_directory: /srv/app}", "/srv/app"),
        ("{command: serve, working_directory: null}", None),
        ("{runtime: docker, docker: {image: web}}", None),
        ("{runtime: docker, docker: {image: web}, working_directory: /app}", "/app"),
        ("{runtime: external, external: {task: start}}", None),
    ],
)
def test_a_process_runs_in_the_folder_of_its_file(tmp_path: Path, revision: str, folder: str | None) -> None:
    (wanted,) = read(tmp_path, f"deployment: web\nrevision: {revision}")
    assert wanted.revision is not None
    assert wanted.revision.spec.working_directory == (folder and folder.replace("{file}", str(tmp_path)))


def test_what_comes_from_standard_input_runs_in_the_folder_of_who_sends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(WEB.encode())))
    assert [each.revision and each.revision.working_directory for each in read_file("-")] == [str(tmp_path)]


def test_several_documents_are_several_deployments(tmp_path: Path) -> None:
    two = read(tmp_path, f"{WEB}---{WEB.replace('deployment: web', 'deployment: api')}---\n")
    assert [wanted.deployment for wanted in two] == ["web", "api"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("replicas: 3", "replica: 3"), "web.yaml: line 3, replica: there is no such field; did you mean replicas?"),
        (
            ("  env:", "  enviroment:"),
            "line 6, revision.enviroment: there is no such field; the fields are runtime, command",
        ),
        (("deployment: web", "name: web"), "line 2, deployment: is missing; line 2, name: there is no such field"),
        (("deployment: web", "services: {web: {image: nginx}}"), "web.yaml: is a file of Docker Compose; 'roll"),
        (("deployment: web", "apiVersion: apps/v1\nkind: Deployment"), "is a manifest of Kubernetes; 'rollway apply"),
        (("deployment: web", "deployment: My_Web"), "deployment: must be lower-case letters, digits, '-' and '.'"),
        (
            ("deployment: web", f"deployment: {'a' * 60}"),
            "deployment: must be lower-case letters, digits, '-' and '.', 54",
        ),
        (
            ("rolling_update", "blue_green\n  spec: {manual: true}"),
            "line 9, policy.spec.manual: there is no such field; the fields",
        ),
        (("replicas: 3", "replicas: three"), "web.yaml: line 3, replicas: must be a whole number, such as 3"),
        (("replicas: 3", "replicas: -1"), "replicas: must be at least 0"),
        (('"1"', "1.10"), "line 6, revision.env.VERSION: must be text; put it in quotes"),
        (('"1"', "true"), "revision.env.VERSION: must be text; put it in quotes"),
        (("  command: python app.py --port 80\n", ""), "line 4, revision.command: is required"),
        (("rolling_update", "sometimes"), "line 8, policy.strategy: must be one of"),
        (("rolling_update", "rolling_update\n  spec: {max_surge: 0, max_unavailable: 0}"), "cannot both be 0"),
        (("rolling_update", "rolling_update\n  limits: {timeout_seconds: 0}"), "policy.limits.timeout_seconds"),
        (("replicas: 3", "replicas: 3\nreplicas: 4"), "replicas is there twice"),
        (("replicas: 3", "replicas: ["), "line 5, column 10: expected"),
    ],
)
def test_a_fault_names_the_file_the_field_and_what_would_be_right(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    found = fault(tmp_path, WEB.replace(*change))
    assert found.startswith("web.yaml: ")
    assert said in found
    assert "\n" not in found


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("9" * 5000, "line 4, column 11: this is no valid int; quote it if it is meant as text"),
        ("2024-13-45", "line 4, column 11: this is no valid timestamp; quote it"),
        ("0b_", "line 4, column 11: replicas: 0b_ is not the same number to every reader of YAML"),
        ("010", "line 4, column 11: replicas: 010 is not the same number to every reader of YAML; write it plainly"),
        ("1:30", "line 4, column 11: replicas: 1:30 is not the same number to every reader of YAML"),
        ("1_0", "line 4, column 11: replicas: 1_0 is not the same number to every reader of YAML"),
        ("[1:30.5]", "line 4, column 12: 1:30.5 is not the same number to every reader of YAML"),
        ("!!int abc", "line 4, column 11: this is no valid int"),
        ("!!bool x", "line 4, column 11: this is no valid bool"),
        ("!!timestamp x", "line 4, column 11: this is no valid timestamp"),
        ("!!map x", "line 4, column 11: expected a mapping node, but found scalar"),
        ("!!set x", "line 4, column 11: expected a mapping node, but found scalar"),
        ("[" * 1000, "line 4, column 43: is nested more than 32 levels deep; make it flatter"),
        ('"\\U00110000"', "line 4, column 14: a number here is too great for YAML"),
        ('"\\UFFFFFFFF"', "line 4, column 14: a number here is too great for YAML"),
        ("\x1b[2J", "line 4: the character U+001B cannot stand in YAML"),
        ('"\\0"', "replicas: a text cannot contain the character NUL"),
        ('"\\ud800"', "replicas: a text cannot contain half of a surrogate pair"),
        (".nan", "replicas: must be a finite number"),
        ("&a [*a]", "line 4, column 15: a list or fields cannot hold themselves"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_yaml_itself_stumbles_over_is_a_fault_with_its_line(tmp_path: Path, value: str, said: str) -> None:
    found = fault(tmp_path, f"deployment: web\npolicy:\n  strategy: recreate\nreplicas: {value}\n")
    assert found.startswith("web.yaml: ")
    assert said in found
    assert "\n" not in found


def test_memory_without_end_is_refused_at_its_field(tmp_path: Path) -> None:
    limit = {"runtime": "docker", "docker": {"image": "web:1", "resources": {"memory": "9" * 400 + "g"}}}
    found = fault(tmp_path, json.dumps({"deployment": "web", "revision": limit}))
    assert "revision.docker.resources.memory: must be a number of bytes" in found


@pytest.mark.parametrize("level", ["[{}]", "{{<<: [{}]}}"], ids=["lists", "merged"])
def test_a_value_in_a_billion_places_is_refused_at_its_line(tmp_path: Path, level: str) -> None:
    levels = "\n".join(f"  l{n}: &l{n} {level.format(', '.join([f'*l{n - 1}'] * 10))}" for n in range(1, 10))
    found = fault(tmp_path, f"deployment: web\nx:\n  l0: &l0 {{a: b}}\n{levels}\n")
    assert ": line 8, column " in found
    assert ": more than 100,000 values are too many" in found


def test_many_documents_are_together_no_larger_than_one(tmp_path: Path) -> None:
    document = f"---\na: &a [{'x, ' * 99}x]\nb: &b [{'*a, ' * 99}*a]\n"
    assert "there is no such field" in fault(tmp_path, document * 9)
    assert "line 30, column 4: more than 100,000 values are too many" in fault(tmp_path, document * 11)


def test_no_more_of_a_file_is_read_than_it_may_have(tmp_path: Path) -> None:
    variables = "".join(f"    V{number}: x\n" for number in range(500_000))
    began = time.process_time()
    too_long = "has more than 512 KiB, which are the most; put what is large into a file of its own"
    assert fault(tmp_path, f"{WEB}  x:\n{variables}") == f"web.yaml: {too_long}"
    with pytest.raises(InvalidInputError, match=f"/dev/zero: {too_long}"):
        read_file("/dev/zero")
    with pytest.raises(InvalidInputError, match=f"--set: /dev/zero: {too_long}"):
        yaml_of("/dev/zero")
    assert time.process_time() - began < 2


def test_numbers_that_all_readers_of_yaml_read_alike_are_taken() -> None:
    written = "[0, -7, +12, 0x1F, 1.5, .5, 1.0e+3, 01.5, .inf, '010', \"1:30\", 10:x]"
    assert documents_of(written) == [[0, -7, 12, 31, 1.5, 0.5, 1000.0, 1.5, float("inf"), "010", "1:30", "10:x"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "web.yaml: holds no deployment"),
        ("- web", "web.yaml: must be fields such as 'deployment: web'"),
        (f"{WEB}---{WEB}", "deployment: web is in two documents"),
        (f"{WEB}---\ndeployment: 7", "web.yaml: document 2, line 10, deployment: must be text"),
        ("a: !!python/object:os.system x", "web.yaml: line 1"),
    ],
)
def test_what_is_no_deployment_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in fault(tmp_path, text)


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidInputError, match=r"^nowhere\.yaml: cannot be read: No such file or directory$"):
        read_file("nowhere.yaml")
