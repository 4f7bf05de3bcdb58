"""Clients that other people's tools make of the description: each creates, applies, waits, undoes and reads events."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from api.people.resources.openapi import openapi
from domain.installation.tokens import Role
from tests.support.people.people_api import People
from tests.support.stack.stack import ROOT

pytestmark = pytest.mark.e2e
SERVICE = f"{sys.executable} {ROOT / 'examples' / 'http_service.py'}"
MAKER = Path(sys.prefix) / "clients" / "bin" / "openapi-python-client"
TYPESCRIPT = Path(sys.prefix) / "typescript" / "node_modules"
DONE = {
    "made": True,
    "has a rollout": True,
    "is planned": True,
    "back": "v1",
    "heard": True,
    "refused": "no_rollout",
}

PROGRAM = """
import json, sys, threading, time
from rollway_client import AuthenticatedClient
from rollway_client.api.default import apply, create_deployment, deployment, events, plan_undo, resume, undo
from rollway_client.models import Apply, CreateDeployment, Document, Undo

url, token, command = sys.argv[1:]
client = AuthenticatedClient(url, token)
heard = threading.Event()


def listen():
    asked = {**events._get_kwargs(deployment="python"), "timeout": 60}
    with client.get_httpx_client().stream(**asked) as stream:
        for line in stream.iter_lines():
            if line.startswith("data: ") and json.loads(line[6:]).get("phase") == "undo":
                return heard.set()


def applied(name, more):
    health = {"path": "/health", "interval_seconds": 0.2}
    revision = {"name": name, "command": [*command.split(), more], "health_check": health}
    document = Document.from_dict({"deployment": "python", "replicas": 1, "revision": revision})
    return apply.sync(client=client, body=Apply(documents=[document])).documents[0].rollout_id


def until(revision):
    while True:
        seen = deployment.sync("python", client=client)
        if (seen.lifecycle, seen.current_revision) == ("ready", revision):
            return
        time.sleep(0.1)


policy = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
new = CreateDeployment.from_dict({"deployment": "python", "policy": policy})
made = create_deployment.sync(client=client, body=new)
threading.Thread(target=listen, daemon=True).start()
applied("v1", "first")
until("v1")
rollout = applied("v2", "second")
until("v2")
plan = plan_undo.sync("python", client=client, body=Undo())
back = undo.sync("python", client=client, body=Undo(reason="to see"))
until("v1")
print(json.dumps({
    "made": made.version > 0,
    "has a rollout": rollout is not None,
    "is planned": len(plan.waves) > 0,
    "back": back.revision,
    "heard": heard.wait(30),
    "refused": resume.sync("python", client=client).code,
}))
"""

LINT = """
import { createConfig, lint } from '@redocly/openapi-core'
const problems = await lint({ ref: 'openapi.json', config: await createConfig({ extends: ['recommended'] }) })
console.log(JSON.stringify(problems.map(({ message, location }) => `${location[0].pointer}: ${message}`)))
"""


@pytest.fixture
def described(tmp_path: Path) -> Path:
    """The description in a folder of its own, where a client is made."""
    (tmp_path / "openapi.json").write_text(json.dumps(openapi()), encoding="utf-8")
    return tmp_path


def ran(folder: Path, *command: str | Path) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(folder / "client")}
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_node(folder: Path) -> None:
    """Let programs of Node in this folder find what npm has installed; without Node the test is skipped."""
    if not (TYPESCRIPT.exists() and shutil.which("node")):
        pytest.skip("NO NODE OR NO NPM, SO NO CLIENT IN TYPESCRIPT IS TRIED HERE: 'make clients' installs the rest")
    (folder / "node_modules").symlink_to(TYPESCRIPT)


def test_redocly_finds_nothing_to_say_of_the_description(described: Path) -> None:
    with_node(described)
    (described / "lint.mjs").write_text(LINT, encoding="utf-8")
    assert json.loads(ran(described, "node", "lint.mjs")) == []


def test_a_client_in_python_is_made_with_every_answer_and_drives_a_deployment(
    server_beside_fleet: People, described: Path
) -> None:
    if not MAKER.exists():
        pytest.skip("NO MAKER OF CLIENTS, SO NONE IN PYTHON IS TRIED HERE: 'make clients' installs it")
    made = "client/rollway_client"
    (described / "client").mkdir()
    said = ran(described, MAKER, "generate", "--path", "openapi.json", "--output-path", made, "--meta", "none")
    assert "may be missing" not in said, said
    assert (described / made / "models" / "host_view.py").exists()
    asked = (server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="py"), SERVICE)
    assert json.loads(ran(described, MAKER.parent / "python", "-c", PROGRAM, *asked)) == DONE


def test_a_client_in_typescript_is_checked_against_the_description_and_drives_a_deployment(
    server_beside_fleet: People, described: Path
) -> None:
    with_node(described)
    (described / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    shutil.copy(Path(__file__).with_name("client.ts"), described)
    programs = TYPESCRIPT / ".bin"
    ran(
        described,
        programs / "openapi-typescript",
        "openapi.json",
        "-o",
        "rollway.d.ts",
        "--default-non-nullable",
        "false",
    )
    strict = ("--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "--types", "node")
    ran(described, programs / "tsc", *strict, "client.ts")
    asked = (server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="ts"), SERVICE)
    assert json.loads(ran(described, "node", "client.js", *asked)) == DONE
