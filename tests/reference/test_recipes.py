"""What CONTRIBUTING says of adding a command or a read is done to a copy of the product, to the letter, and asked."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from sqlalchemy import Engine

from tests.support.pictures.pictures import READY
from tests.support.rows.deployments import make_deployment

ROOT = Path(__file__).parents[2]
PRODUCT = ("api", "cli", "db", "domain", "runtime", "stack", "tasks", "traffic")
MOST_FILES = {"command": 4, "read": 2}

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


READ = """
import json, os
from api.people.asking.asked import Asked, Parameters
from api.people.resources.answers import look
from api.people.resources.openapi import openapi
from api.people.resources.table import READS
from cli.remote_views.views import VIEWS
from db.connection.engine import make_engine
from db.connection.settings import DatabaseSettings
from db.views.fleet.size import fleet_size

(read,) = (read for read in READS if read.path == "/v1/fleet")
engine = make_engine(DatabaseSettings(url=os.environ["DATABASE_URL"]))
documented = openapi()["paths"]["/v1/fleet"]["get"]
print(json.dumps({
    "answers": look(engine, read, Asked(None, {}, Parameters())),
    "documented": documented["summary"],
    "shape": sorted(documented["responses"]["200"]["content"]["application/json"]["schema"]["properties"]),
    "over HTTP": fleet_size in VIEWS,
}))
"""


def recipe(what: str) -> str:
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"### Add a {what}\n")[2]
    found: list[str] = re.findall(r"^```diff\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return found[0]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for room in PRODUCT:
        copytree(ROOT / room, tmp_path / room, ignore=ignore_patterns("__pycache__"))
    return tmp_path


def ran(copy: Path, *command: str, given: str | None = None, **more: str) -> str:
    """What it prints, run in the copy: what is imported from there comes before what is installed."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "GIT_CEILING_DIRECTORIES": str(copy.parent)}
    environment |= {"REDIS_URL": "redis://127.0.0.1:1/0", **more}
    done = subprocess.run(command, cwd=copy, env=environment, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("what", MOST_FILES)
def test_a_command_is_four_files_of_the_product_and_a_read_is_two(what: str) -> None:
    changed = re.findall(r"^\+\+\+ (.+)$", recipe(what), re.MULTILINE)
    assert 0 < len(changed) <= MOST_FILES[what]
    assert {path.partition("/")[0] for path in changed} <= {*PRODUCT}


def test_what_is_added_by_the_recipe_is_a_task_a_path_and_a_line_of_the_help(copy: Path) -> None:
    ran(copy, "git", "apply", "-p0", "-", given=recipe("command"))
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


def test_a_read_that_is_added_by_the_recipe_is_asked(copy: Path, engine: Engine, database: str) -> None:
    make_deployment(engine, "■■■", name="web", n=3, status=READY)
    ran(copy, "git", "apply", "-p0", "-", given=recipe("read"))
    assert json.loads(ran(copy, sys.executable, "-c", READ, DATABASE_URL=database)) == {
        "answers": {"deployments": 1, "replicas_wanted": 3},
        "documented": "How many deployments there are, and how many replicas they want together.",
        "shape": ["deployments", "replicas_wanted"],
        "over HTTP": True,
    }
