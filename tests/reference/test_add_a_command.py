"""What CONTRIBUTING says of adding a command is done to a copy of the product, to the letter: the command is there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("api", "cli", "db", "domain", "runtime", "stack", "tasks", "traffic")
MOST_FILES = 4

ASKED = """
import json
from api.people.resources.commands_sent import request_of
from api.people.resources.openapi import openapi
from db.commands.steering import RULES
from domain.commands.messages import parse_command
from tasks.asked import commands
from tasks.app import app

command = parse_command("rollway.extend", {"deployment": "web", "request_id": "once"})
print(json.dumps({
    "module": __import__("domain").__path__[0],
    "is a task": "rollway.extend" in app.tasks,
    "has a rule": type(command) in RULES,
    "request": request_of(command)[:2],
    "documented": sorted(openapi()["paths"].get("/v1/deployments/{deployment}/extend", {})),
}))
"""


def recipe() -> str:
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("### Add a command\n")[2]
    found: list[str] = re.findall(r"^```diff\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return found[0]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for room in PRODUCT:
        copytree(ROOT / room, tmp_path / room, ignore=ignore_patterns("__pycache__"))
    return tmp_path


def ran(copy: Path, *command: str, given: str | None = None) -> str:
    """What it prints, run in the copy: what is imported from there comes before what is installed."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "GIT_CEILING_DIRECTORIES": str(copy.parent)}
    environment["REDIS_URL"] = "redis://127.0.0.1:1/0"
    done = subprocess.run(command, cwd=copy, env=environment, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_command_is_four_files_of_the_product() -> None:
    changed = re.findall(r"^\+\+\+ (.+)$", recipe(), re.MULTILINE)
    assert 0 < len(changed) <= MOST_FILES
    assert {path.partition("/")[0] for path in changed} <= {*PRODUCT}


def test_what_is_added_by_the_recipe_is_a_task_a_path_and_a_line_of_the_help(copy: Path) -> None:
    ran(copy, "git", "apply", "-p0", "-", given=recipe())
    assert json.loads(ran(copy, sys.executable, "-c", ASKED)) == {
        "module": str(copy / "domain"),
        "is a task": True,
        "has a rule": True,
        "request": ["POST", "/v1/deployments/web/extend"],
        "documented": ["post"],
    }
    assert "\n  extend " in ran(copy, sys.executable, "-m", "cli.main", "--help")
    said = ran(copy, sys.executable, "-m", "cli.main", "extend", "--help")
    assert "Give a rollout more time: its deadline counts from now on." in said
    assert all(option in said for option in ("--reason", "--actor", "--request-id", "--json", "rollway extend web"))
