"""A command, a phase and a read are added to a copy of the product as docs/extending.md says, to the letter."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from shutil import copytree, ignore_patterns

import pytest
from sqlalchemy import Engine

from domain.installation.tokens import Role
from tests.support.people.people_api import People, people_process
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import make_deployment, read, write

ROOT = Path(__file__).parents[2]
PRODUCT = ("api", "cli", "db", "domain", "runtime", "stack", "tasks", "traffic")
MOST_FILES = {"command": 4, "read": 2, "phase of a rollout": 4}

ASKED = """
import asyncio, json, os, sys
import httpx
from api.people.people_app import make_app
from api.people.page.forms import form_token
from api.people.resources.command_resources import request_of
from api.people.resources.openapi import openapi
from db.connection.transactions import in_transaction, make_engine
from db.connection.database_settings import DatabaseSettings
from db.access_tokens import create_token
from domain.commands.registry import parse_command
from domain.traffic.entrances import SESSION_COOKIE
from domain.installation.tokens import NewToken
from tasks import command_tasks
from tasks.app import app

engine = make_engine(DatabaseSettings(url=os.environ["DATABASE_URL"]))
ann = NewToken(name="ann", role="releaser", deployments=(), days=None, actor="root")
in_transaction(engine, lambda connection: create_token(connection, ann, "s3cret"))
served = httpx.ASGITransport(app=make_app(engine, os.environ["REDIS_URL"], 100.0))
PLACE = "/deployments/web/extend"

async def asked():
    async with httpx.AsyncClient(transport=served, base_url="https://rollway", timeout=60) as client:
        bearer = {"authorization": "Bearer s3cret"}
        offered = (await client.get("/v1/deployments/web/offered", headers=bearer)).json()["items"]
        planned = await client.post(f"/v1{PLACE}/plan", json={"seconds": 60}, headers=bearer)
        refused = await client.post(f"/v1{PLACE}", json={"seconds": 0}, headers=bearer)
        done = await client.post(f"/v1{PLACE}", json={"seconds": 60}, headers=bearer)
        await client.post("/login", data={"token": "s3cret"})
        said = {"form_token": form_token(client.cookies[SESSION_COOKIE]), "seconds": "60", "reason": "it is large"}
        foreseen, pressed = [await client.post(path, data=said) for path in (f"{PLACE}/plan", PLACE)]
        answers = planned, refused, done, foreseen, pressed
        return [offer for offer in offered if offer["verb"] == "extend"], [answer.status_code for answer in answers]

command = parse_command("rollway.extend", {"deployment": "web", "request_id": "once", "seconds": 60})
documented = openapi()["paths"]["/v1/deployments/{deployment}/extend"]["post"]["requestBody"]
(button,), statuses = asyncio.run(asked())
print(json.dumps({
    "module": __import__("domain").__path__[0],
    "is a task": "rollway.extend" in app.tasks,
    "request": request_of(command)[:3],
    "example": documented["content"]["application/json"]["example"],
    "label": button["label"],
    "fields": [[field[name] for name in ("name", "kind", "least", "most", "is_needed")] for field in button["fields"]],
    "statuses": statuses,
}))
"""

DEADLINE = "SELECT extract(epoch FROM deadline)::int AS deadline FROM rollouts"


READ = """
import json
from api.people.resources.openapi import openapi
from cli.client import Reader

documented = openapi()["paths"]["/v1/fleet"]["get"]
model = documented["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
with Reader() as reader:
    print(json.dumps({
        "answers": reader.ask("/v1/fleet"),
        "documented": documented["summary"],
        "model": model,
        "shape": sorted(openapi()["components"]["schemas"][model]["properties"]),
    }))
"""

PHASE = """
import os
from db.connection.transactions import make_engine
from db.connection.database_settings import DatabaseSettings
from tests.support.rows.deployments import mark, read
from tests.support.workers.coordinators import coordinator_without_redis, run_until_quiet

engine = make_engine(DatabaseSettings(url=os.environ["DATABASE_URL"]))
for row in read(engine, "SELECT id FROM deployments"):
    mark(engine, row["id"])
run_until_quiet(coordinator_without_redis(engine))
"""
STANDS = "SELECT name, lifecycle, sub_step, reason FROM deployments ORDER BY name"
LET_SETTLE = (
    "ALTER TABLE deployments DROP CONSTRAINT deployments_sub_step_check, ADD CONSTRAINT deployments_sub_step_check"
    " CHECK (sub_step IN ('provisioning', 'settling', 'rolling_back'))"
)


def recipe(what: str) -> str:
    section = (ROOT / "docs/extending.md").read_text(encoding="utf-8").partition(f"## Add a {what}\n")[2]
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
def test_a_command_and_a_phase_are_four_files_of_the_product_and_a_read_is_two(what: str) -> None:
    changed = re.findall(r"^\+\+\+ (.+)$", recipe(what), re.MULTILINE)
    assert 0 < len(changed) <= MOST_FILES[what]
    assert {path.partition("/")[0] for path in changed} <= {*PRODUCT}


def test_what_is_added_by_the_recipe_is_asked_in_every_way_there_is(copy: Path, engine: Engine, database: str) -> None:
    make_deployment(engine, "■■|◇", name="web", status=PROVISIONING)
    ran(copy, "git", "apply", "-p0", "-", given=recipe("command"))
    ((before,),) = (row.values() for row in read(engine, DEADLINE))
    printed = ran(copy, sys.executable, "-c", ASKED, DATABASE_URL=database)
    assert json.loads(printed.splitlines()[-1]) == {
        "module": str(copy / "domain"),
        "is a task": True,
        "request": ["POST", "/v1/deployments/web/extend", {"reason": "", "seconds": 60}],
        "example": {"seconds": 600, "reason": "the images are large"},
        "label": "More time …",
        "fields": [["seconds", "integer", 1, 86_400, True]],
        "statuses": [200, 422, 200, 200, 200],
    }
    assert "\n  extend " in ran(copy, sys.executable, "-m", "cli.main", "--help")
    said = ran(copy, sys.executable, "-m", "cli.main", "extend", "--help")
    options = ("--reason", "--actor", "--request-id", "--json")
    assert all(each in said for each in (*options, "Give a rollout more time.", "SECONDS", "By how much its deadline"))
    (example,) = re.findall(r"^    rollway (extend .*)$", said, re.MULTILINE)
    ran(copy, sys.executable, "-m", "cli.main", *shlex.split(example), DATABASE_URL=database)
    ((after,),) = (row.values() for row in read(engine, DEADLINE))
    assert after - before == 60 + 60 + 600


@pytest.mark.decides_wrongly  # as the product sees it that has no such phase
def test_a_phase_that_is_added_by_the_recipe_lasts_and_is_left_in_either_direction(
    copy: Path, engine: Engine, database: str
) -> None:
    for name in ("bad", "good"):
        make_deployment(engine, "|■■■", name=name, n=3, status=PROVISIONING)
    write(engine, LET_SETTLE)
    ran(copy, "git", "apply", "-p0", "-", given=recipe("phase of a rollout"))
    ran(copy, sys.executable, "-c", PHASE, DATABASE_URL=database)
    settling = {"lifecycle": "deploying", "sub_step": "settling", "reason": "waiting: 0 s settling < 5 min"}
    assert read(engine, STANDS) == [{"name": name, **settling} for name in ("bad", "good")]
    write(
        engine, "UPDATE deployments SET phase_started_at = phase_started_at - interval '5 minutes' WHERE name = 'good'"
    )
    ran(copy, sys.executable, "-m", "cli.main", "abort", "bad", DATABASE_URL=database)
    ran(copy, sys.executable, "-c", PHASE, DATABASE_URL=database)
    bad, good = read(engine, STANDS)
    assert (bad["sub_step"], good["lifecycle"]) == ("rolling_back", "ready")


def test_a_read_that_is_added_by_the_recipe_is_asked(copy: Path, engine: Engine, database: str) -> None:
    make_deployment(engine, "■■■", name="web", n=3, status=READY)
    ran(copy, "git", "apply", "-p0", "-", given=recipe("read"))
    expected = {
        "answers": {"deployments": 1, "replicas_wanted": 3},
        "documented": "How many deployments there are, and how many replicas they want together.",
        "model": "FleetSize",
        "shape": ["deployments", "replicas_wanted"],
    }
    assert json.loads(ran(copy, sys.executable, "-c", READ, DATABASE_URL=database)) == expected
    server = replace(people_process(database, "redis://127.0.0.1:1/0", copy, PYTHONPATH=str(copy)), code=copy)
    served = People(server, database)
    server.start()
    try:
        over_http = {"ROLLWAY_URL": server.url, "ROLLWAY_TOKEN": served.token(Role.VIEWER)}
        assert json.loads(ran(copy, sys.executable, "-c", READ, **over_http)) == expected
    finally:
        server.end(kill=True)
        served.engine.dispose()
