"""`rollway logs` with ROLLWAY_URL: the server asks the hosts, and says which of them are silent."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import UUID

import pytest
import redis
from sqlalchemy import Engine

from domain.installation.tokens import Role
from tasks.hosts.host_rpc import LOGS, HostAnswers, LogAnswers, answer_for_host
from tests.cli.conftest import Rollway
from tests.support.people.people_api import People
from tests.support.pictures.pictures import READY
from tests.support.rows.deployments import make_deployment, write

pytestmark = pytest.mark.usefixtures("servers")


@pytest.fixture
def gpu_2(redis_url: str, tmp_path: Path) -> Iterator[Path]:
    """The logs of a host that answers."""
    until, home = threading.Event(), tmp_path / "gpu-2"
    logs = home / "logs" / "replicas"
    logs.mkdir(parents=True)
    with redis.Redis.from_url(redis_url) as client:
        thread = answer_for_host(HostAnswers(client, "gpu-2", {LOGS: LogAnswers(home)}), until)
        yield logs
        until.set()
        thread.join(10)


@pytest.fixture
def routes(engine: Engine, gpu_2: Path) -> tuple[UUID, ...]:
    """One on a host that answers, and one on a host that does not."""
    made = make_deployment(engine, "■■", status=READY).routes
    for route, host in zip(made, ("gpu-2", "gpu-3"), strict=True):
        write(engine, "UPDATE routes SET host = %s WHERE id = %s", host, route)
    (gpu_2 / f"{made[0]}.log").write_text("one\ntwo\n")
    return made


def test_a_laptop_reads_logs_of_whichever_host_and_is_told_which_are_silent(
    rollway: Rollway, laptop: Rollway, routes: tuple[UUID, ...]
) -> None:
    there, lost = (route.hex for route in routes)
    for asked in (("logs", "web"), ("logs", there[-8:], "--json"), ("logs", "f" * 32)):
        assert laptop(*asked) == rollway(*asked), asked
    assert laptop("logs", there, "-n", "1").out == "two\n"
    refused = laptop("logs", lost)
    assert (refused.code, "runs on host gpu-3" in refused.err) == (1, True)


def test_a_laptop_follows_and_names_a_silent_host(remote_server: People, routes: tuple[UUID, ...], gpu_2: Path) -> None:
    shown = {"ROLLWAY_URL": remote_server.server.url, "ROLLWAY_TOKEN": remote_server.token(Role.OPERATOR)}
    servers = ("DATABASE_URL", "REDIS_URL")
    environment = {name: value for name, value in os.environ.items() if name not in servers} | shown
    command = [sys.executable, "-m", "cli.main", "logs", "web", "--follow"]
    with (
        subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as following,
        ExitStack() as stack,
    ):
        stack.callback(following.kill)
        assert following.stdout is not None
        assert following.stderr is not None
        whose = f"{routes[0].hex[-8:]} v1 | "
        assert [following.stdout.readline() for _ in range(2)] == [f"{whose}one\n", f"{whose}two\n"]
        assert "host gpu-3 does not say what its replicas print" in following.stderr.readline()
        with (gpu_2 / f"{routes[0]}.log").open("a") as log:
            log.write("three\n")
        assert following.stdout.readline() == f"{whose}three\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(20) == 0


def test_the_resource_shows_a_token_the_replicas_of_its_deployments(
    remote_server: People, engine: Engine, routes: tuple[UUID, ...]
) -> None:
    make_deployment(engine, "■", n=1, name="shop")
    here, lost = map(str, routes)
    with remote_server.client(Role.OPERATOR, "web") as mine, remote_server.client(Role.OPERATOR, "shop") as foreign:
        told = mine.post("/v1/deployments/web/logs", json={"lines": 1}).json()
        piece = {"route": here, "host": "gpu-2", "text": "two\n", "place": 8}
        assert told == {"items": [piece], "silent": ["gpu-3"]}
        on = {"places": [{"route": here, "place": 4}]}
        assert mine.post("/v1/deployments/web/logs", json=on).json() == {
            "items": [{**piece, "place": 8}],
            "silent": [],
        }
        assert foreign.post("/v1/deployments/shop/logs", json=on).json() == {"items": [], "silent": []}
        (found,) = mine.get("/v1/routes", params={"id": routes[0].hex[-8:]}).json()["items"]
        assert (found["id"], found["deployment"]) == (here, "web")
        assert foreign.get("/v1/routes", params={"id": routes[0].hex}).json() == {"items": []}
        refused = mine.post("/v1/deployments/web/logs", json={"places": [{"route": lost, "place": -1}]})
        assert (refused.status_code, refused.json()["field"]) == (422, "places.0.place")
