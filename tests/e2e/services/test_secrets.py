"""Twenty secrets and as many plain values, marked: the replica has them, and nothing that writes down or shows does."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis

from tests.support.proxies import plain_http
from tests.support.stack.flower import start_flower
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.waiting import eventually
from tests.support.workers.marked import dump_of, files_of, found_in, heard, marks, processes
from tests.support.workers.queues import answer_of

pytestmark = pytest.mark.e2e

KINDS = {"file": 7, "env": 6, "command": 7}
PARTS = ("worker1", "beat", "flower")


@pytest.fixture
def host(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a host where its secrets are; it is no part of Rollway's home."""
    return tmp_path_factory.mktemp("host")


def referring(host: Path, secrets: Mapping[str, list[str]]) -> dict[str, Any]:
    """References by variable, to what this writes for the host."""
    for kind in ("file", "command"):
        (host / kind).mkdir()
        for number, value in enumerate(secrets[kind]):
            (host / kind / str(number)).write_text(f"{value}\n")
    lines = [f"SECRET_{number}={value}" for number, value in enumerate(secrets["env"])]
    (host / "variables").write_text("\n".join(lines))
    asked = {
        "file": [f"file:{host}/file/{number}" for number in range(KINDS["file"])],
        "env": [f"env:SECRET_{number}" for number in range(KINDS["env"])],
        "command": [f"command:/bin/cat {host}/command/{number}" for number in range(KINDS["command"])],
    }
    return {f"{kind}_{n}": {"secret": text} for kind in KINDS for n, text in enumerate(asked[kind])}


def send(fleet: Fleet, client: redis.Redis, command: str, **payload: Any) -> dict[str, Any]:
    """As a service sends it; the answer."""
    payload = {"request_id": uuid4().hex, "deployment": "web", **payload}
    sent = fleet.producer.send_task(f"rollway.{command}", kwargs={"payload": payload}, queue="commands")
    told: dict[str, Any] = answer_of(client, sent.id)["result"]
    return told


def pages(flower: str) -> str:
    """What Flower's pages and its API show, of each task too, and of what workers say of themselves."""
    paths = ["/api/tasks", "/tasks", "/workers", "/api/workers?refresh=1"]
    tasks = plain_http.get(f"{flower}/api/tasks").json()
    paths += [f"/{page}/{task}" for task in tasks for page in ("api/task/info", "task")]
    return "\n".join(plain_http.get(f"{flower}{path}", timeout=300).text for path in paths)


def leaky_program(host: Path, value: str) -> Path:
    """It fails, and says on both its outputs what it has read."""
    made = host / "leaky"
    made.write_text(f"#!/bin/sh\necho {value} | tee /dev/stderr\nexit 1\n")
    made.chmod(0o755)
    return made


def roll_out(fleet: Fleet, client: redis.Redis, host: Path, env: Mapping[str, Any], leaky: Path) -> str:
    """One replica with that environment, and a revision that is refused; what Flower shows then."""
    flower = start_flower(fleet)
    allowed = f"file:{host}/file,command:/bin/cat,command:{leaky}"
    fleet.start_workers("worker1", ROLLWAY_SECRETS_ALLOW=allowed, ROLLWAY_SECRETS_ENV_FILE=str(host / "variables"))
    fleet.start_beat()
    spec = {"command": [sys.executable, str(ROOT / "examples/http_service.py")], "env": env}
    send(fleet, client, "create_deployment")
    send(fleet, client, "add_revision", name="v1", spec=spec)
    assert send(fleet, client, "activate_revision", revision="v1")["ok"]
    fleet.wait_until_ready("web", "v1", 1)
    send(fleet, client, "add_revision", name="v2", spec={**spec, "env": {"A": {"secret": f"command:{leaky}"}}})
    refused = send(fleet, client, "activate_revision", revision="v2")["error"]
    assert refused["code"] == "missing_secret"
    assert "the program ended with exit code 1" in refused["message"]
    return eventually(lambda: text if "missing_secret" in (text := pages(flower)) else None, what="Flower to know")


def test_only_the_replica_has_the_secrets_and_plain_values_are_shown_nowhere(
    fleet: Fleet, redis_client: redis.Redis, redis_url: str, host: Path
) -> None:
    secrets = {kind: marks(kind, count) for kind, count in KINDS.items()}
    hidden, plain = [value for values in secrets.values() for value in values], marks("plain", 20)
    env = {**referring(host, secrets), **{f"plain_{n}": value for n, value in enumerate(plain)}}
    with heard(redis_url) as valkey:
        shown = roll_out(fleet, redis_client, host, env, leaky_program(host, hidden[0]))
    (replica,) = fleet.replica_processes("web")
    told = replica.environ()
    assert [told[name] for name in env] == [*hidden, *plain]
    assert found_in(hidden, json.dumps(replica.cmdline())) == []

    assert found_in(hidden, dump_of(fleet.engine)) == []
    assert found_in(hidden, "\n".join(valkey)) == []
    assert found_in([*hidden, *plain], files_of(fleet.home)) == []
    assert found_in([*hidden, *plain], shown) == []
    assert found_in([*hidden, *plain], processes(fleet.pid(name) for name in PARTS)) == []
    # a revision is made of these: they are found where it is kept, or nothing was looked at
    assert found_in(plain, dump_of(fleet.engine)) == plain
    assert found_in(plain, "\n".join(valkey)) == plain
    assert "rollway.add_revision" in shown
