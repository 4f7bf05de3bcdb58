"""`rollway diff` and `rollway apply --dry-run`: what a file would change, with exit code 5, and nothing changes."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Engine

from cli.terminal.exits import ExitCode
from tests.cli.conftest import Rollway
from tests.support.rows.deployments import read

pytestmark = pytest.mark.usefixtures("servers")

WEB = """
deployment: web
replicas: 3
revision: {name: v1, command: sleep 60, env: {TOKEN: hunter2, SAME: same}}
policy: {strategy: rolling_update, spec: {max_surge: 1}}
traffic: {hosts: [web.example.com]}
"""
File = Callable[..., str]


@pytest.fixture
def file(tmp_path: Path) -> File:
    def write(*changes: tuple[str, str]) -> str:
        content = WEB
        for change in changes:
            assert change[0] in content
            content = content.replace(*change)
        path = tmp_path / "web.yaml"
        path.write_text(content)
        return str(path)

    return write


def changed_lines(out: str) -> list[str]:
    return [line for line in out.splitlines() if line.startswith(("+", "-"))]


def test_without_a_difference_nothing_is_printed_and_the_code_is_0(rollway: Rollway, file: File) -> None:
    rollway("apply", "-f", file())
    assert (rollway("diff", "-f", file()).code, rollway("diff", "-f", file()).out) == (0, "")
    assert rollway("apply", "-f", file(), "--dry-run").out == "web: nothing to do\n"


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (("replicas: 3", "replicas: 5"), ["-replicas: 3", "+replicas: 5"]),
        (("max_surge: 1", "max_surge: 2"), ["-    max_surge: 1", "+    max_surge: 2"]),
        (("web.example.com", "www.example.com"), ["-  - web.example.com", "+  - www.example.com"]),
        (
            ("name: v1, command: sleep 60", "name: v2, command: sleep 90"),
            ["-  name: v1", "+  name: v2", "-  - '60'", "+  - '90'"],
        ),
        (
            ("name: v1, command: sleep 60, env: {TOKEN: hunter2", "name: v2, command: sleep 60, env: {TOKEN: hunter3"),
            ["-  name: v1", "+  name: v2", "-    TOKEN: '*** (before)'", "+    TOKEN: '*** (after)'"],
        ),
    ],
)
def test_what_differs_is_shown_as_diff_shows_it_with_code_5(
    rollway: Rollway, file: File, change: tuple[str, str], lines: list[str]
) -> None:
    rollway("apply", "-f", file())
    shown = rollway("diff", "-f", file(change))
    assert shown.code == 5
    assert changed_lines(shown.out) == ["--- stored/web", "+++ file/web", *lines]
    assert "hunter" not in shown.out


def test_values_that_differ_are_shown_to_who_asks_for_them_and_secrets_as_references(
    rollway: Rollway, file: File
) -> None:
    rollway("apply", "-f", file(("SAME: same", "SAME: same, GONE: g, DB: {secret: 'env:OLD'}")))
    changed = "name: v2, command: sleep 60, env: {TOKEN: hunter3, NEW: n, DB: {secret: 'env:NEW'}"
    shown = rollway("diff", "-f", file(("name: v1, command: sleep 60, env: {TOKEN: hunter2", changed)), "--values")
    assert shown.code == 5
    lines = set(changed_lines(shown.out))
    assert {"-    GONE: g", "-    TOKEN: hunter2", "+    NEW: n", "+    TOKEN: hunter3"} <= lines
    assert {"-      secret: env:OLD", "+      secret: env:NEW"} <= lines
    assert "same" not in shown.out


def test_a_dry_run_says_what_would_be_done_and_does_nothing(rollway: Rollway, file: File, engine: Engine) -> None:
    shown = rollway("apply", "-f", file(), "--dry-run")
    assert shown.code == 5
    assert "+replicas: 3" in shown.out
    assert "web: would be: created, 3 replicas wanted" in shown.out
    assert "hunter2" not in shown.out
    assert read(engine, "SELECT id FROM deployments") == []


def test_as_json_a_difference_is_one_document_for_each_deployment(rollway: Rollway, file: File) -> None:
    rollway("apply", "-f", file())
    shown = rollway("diff", "-f", file(("replicas: 3", "replicas: 4")), "--json")
    (document,) = json.loads(shown.out)
    assert shown.code == 5
    assert document["differs"]
    assert document["would"] == ["scaled from 3 to 4 replicas"]
    assert "-replicas: 3\n+replicas: 4\n" in document["diff"]


def test_what_is_left_out_of_the_file_is_no_difference(rollway: Rollway, file: File) -> None:
    rollway("apply", "-f", file())
    shown = rollway("diff", "-f", file(("replicas: 3\n", ""), ("traffic: {hosts: [web.example.com]}\n", "")))
    assert (shown.code, shown.out) == (0, "")


def test_a_malformed_file_is_refused_before_anything_is_compared(rollway: Rollway, file: File) -> None:
    refused = rollway("diff", "-f", file(("replicas: 3", "replicas: many")))
    assert refused.code == 2
    assert "replicas" in refused.err


@pytest.mark.parametrize(
    "command", ["apply", "apply --dry-run", "diff", "plan"], ids=lambda command: command.replace(" ", "")
)
def test_a_file_of_more_deployments_than_one_command_takes_is_refused_in_a_sentence(
    rollway: Rollway, tmp_path: Path, command: str
) -> None:
    path = tmp_path / "all.yaml"
    path.write_text("".join(f"---\ndeployment: web-{number}\n" for number in range(3_000)))
    said = rollway(*command.split(), "-f", str(path))
    assert said.code == ExitCode.USAGE
    assert "all.yaml: holds 3,000 deployments, and 500 are the most at once" in " ".join(said.err.split())
