"""What the command line says before any server is asked."""

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer

from cli.catalog import COMMANDS, GROUPS
from cli.commands.deployments.change_commands import VERBS
from cli.main import app
from tests.cli.conftest import Rollway

OURS = [name for name in COMMANDS if name not in ("up", "down")]


@pytest.mark.parametrize("command", OURS)
def test_every_command_explains_itself_with_an_example_and_its_exit_codes(rollway: Rollway, command: str) -> None:
    ended = rollway(command, "--help")
    assert ended.code == 0
    assert f"    rollway {command}" in ended.out
    assert "Exit codes:\n    0    done\n" in ended.out


@pytest.mark.parametrize("command", ["apply", "forget-host", *VERBS])
def test_every_writing_command_takes_who_why_and_a_request_id(rollway: Rollway, command: str) -> None:
    said = rollway(command, "--help").out
    assert all(option in said for option in ("--reason", "--actor", "--request-id", "--json"))
    assert ("--wait " in said) == ("--timeout " in said) == (command not in ("forget-host", "pause"))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["scale", "web"], "Missing argument 'DESIRED_REPLICAS'; see 'rollway scale --help'"),
        (["scale", "web", "many"], "Invalid value for 'DESIRED_REPLICAS': must be a whole number, such as 3"),
        (["scale", "web", "-1"], "replicas must be 0 or more, not -1; 0 stops all of them"),
        (["logs", "web", "-20"], "No such option: -2"),
        (
            ["scale", "web", "20000"],
            "Invalid value for 'DESIRED_REPLICAS': must be at most 10000",
        ),
        (["shrink", "web"], "No such command 'shrink'"),
        (["apply"], "Missing option '--file' / '-f'"),
        (["status", "--watch", "--json"], "--watch and --json do not go together"),
    ],
)
@pytest.mark.usefixtures("servers")
def test_a_wrong_command_line_is_one_sentence_and_exit_code_2(
    rollway: Rollway, arguments: list[str], sentence: str
) -> None:
    ended = rollway(*arguments)
    assert ended.code == 2
    said = ended.out if "--json" in arguments else ended.err
    assert sentence in said
    assert said.count("\n") == 1


def test_with_json_a_wrong_command_line_is_a_document(rollway: Rollway) -> None:
    ended = rollway("scale", "web", "--json")
    assert json.loads(ended.out)["error"]["code"] == "usage"
    assert ended.err == ""


def test_an_argument_that_is_no_utf_8_is_one_sentence_and_exit_code_2() -> None:
    command: list[str | bytes] = [sys.executable, "-m", "cli.main", "scale", b"w\xffb", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "argument 2, 'w\\udcffb', is no UTF-8 text; see 'rollway scale --help'\n"


def test_an_argument_that_holds_a_nul_is_refused(rollway: Rollway) -> None:
    """No shell hands one on; a program that calls this in its own process may."""
    ended = rollway("traffic", "a\0b", "--set", "{}")
    assert (ended.code, ended.err) == (
        2,
        "argument 2, 'a\\x00b', has the character NUL; see 'rollway traffic --help'\n",
    )


def test_a_fault_of_rollways_own_is_one_sentence_and_its_traceback_is_shown_when_asked_for() -> None:
    program = """
import sys
from cli.main import app, main

@app.command("break")
def wrong() -> None:
    raise ZeroDivisionError("here\\nand there")

sys.exit(main(["break"]))
"""
    quiet, loud = (
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "ROLLWAY_TRACEBACKS": shown},
            capture_output=True,
            text=True,
            check=False,
        )
        for shown in ("", "1")
    )
    said = "this is a fault of Rollway's own, ZeroDivisionError: here; with ROLLWAY_TRACEBACKS=1 it shows where, "
    assert (quiet.returncode, quiet.stderr) == (1, f"{said}for a report.\n")
    assert "Traceback" in loud.stderr


def test_without_arguments_the_commands_are_listed() -> None:
    done = subprocess.run([sys.executable, "-m", "cli.main"], capture_output=True, text=True, check=False)
    assert all(f"\n  {name} " in done.stdout for name in OURS), done.stderr


def test_the_list_is_in_groups_and_a_screen_and_a_half_at_most(rollway: Rollway) -> None:
    said = rollway("--help").out
    assert [line for line in said.splitlines() if line.rstrip(":") in GROUPS] == [f"{heading}:" for heading in GROUPS]
    assert sum(map(len, GROUPS.values())) == len(COMMANDS)
    assert said.count("\n") <= 80


def test_a_stack_that_does_not_run_is_one_sentence_and_exit_code_3(
    rollway: Rollway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROLLWAY_HOME", str(tmp_path))
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)
    ended = rollway("status")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith(f"No stack of Rollway runs in {tmp_path}: 'rollway up' starts one there")


SLOW = (
    "alembic",
    "celery",
    "domain.commands.registry",
    "domain.handlers.dispatch",
    "starlette",
    "httpx",
    "sqlalchemy",
    "yaml",
)


@pytest.mark.parametrize(
    ("command", "without"),
    [("", (*SLOW, "db", "psycopg", "pydantic", "rich", "stack")), ("status", SLOW), ("history", SLOW)],
)
def test_a_command_imports_what_it_needs_and_the_list_of_commands_none_of_it(command: str, without: Any) -> None:
    program = f"""
import sys
from cli.main import main

main([*{command.split()}, "--help"])
print("loaded:", *(name for name in {without} if name in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded:"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_line_of_a_command_in_the_list_is_how_its_own_help_begins(command: str) -> None:
    group: Any = typer.main.get_command(app)
    assert group.commands[command].help.startswith(COMMANDS[command].line)


def test_every_line_of_the_list_fits_into_a_narrow_terminal() -> None:
    longest = max(map(len, COMMANDS))
    assert {name: listed.line for name, listed in COMMANDS.items() if longest + len(listed.line) + 5 > 80} == {}


def test_tab_completes_names_of_commands_and_their_options() -> None:
    def offered(*words: str) -> list[str]:
        environment = {**os.environ, "_ROLLWAY_COMPLETE": "complete_bash"}
        environment |= {"COMP_WORDS": " ".join(("rollway", *words)), "COMP_CWORD": str(len(words))}
        program = Path(sys.executable).with_name("rollway")
        return subprocess.run([program], env=environment, capture_output=True, text=True, check=True).stdout.split()

    assert offered("pro") == ["promote", "probe", "proxies", "proxy-token"]
    assert "--follow" in offered("logs", "--fo")


def test_the_version_is_the_one_of_the_package(rollway: Rollway) -> None:
    assert rollway("--version").out == f"rollway {version('rollway')}\n"


def test_a_command_looks_for_garbage_seldom_and_not_at_its_end() -> None:
    program = """
import atexit, gc
atexit.register(lambda: print("frozen:", gc.get_freeze_count() > 1000, gc.get_threshold()[0]))
# what is registered first runs last
from cli.main import main

main(["status", "--help"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "frozen: True 100000"
