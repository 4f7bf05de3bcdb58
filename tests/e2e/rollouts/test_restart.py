"""The stack's own stops, and a rollout, through the command line, with requests all the while: none is lost."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from cli.demo.demo_run import demo_load
from cli.demo.load.generator import Load
from runtime.process.process_table import KEEPER, keeper_of
from stack.home.folder import Home, project_root
from stack.home.stack_state import StackState, read_state
from stack.supervisor.stop import _active
from tests.support.proxies import plain_http
from tests.support.stack.waiting import eventually
from tests.support.workers.callers import running

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Machine:
    """One machine with a stack, steered as a person does."""

    home: Home
    environment: Mapping[str, str]

    def rollway(self, *arguments: str) -> Any:
        """What the command answers as JSON."""
        command = [sys.executable, "-m", "cli.main", *arguments, "--json"]
        ended = subprocess.run(
            command, cwd=project_root(), env=self.environment, capture_output=True, text=True, check=False, timeout=900
        )
        assert ended.returncode == 0, f"{arguments}: {ended.stdout}{ended.stderr}"
        return json.loads(ended.stdout)

    @property
    def state(self) -> StackState:
        state = read_state(self.home)
        assert state is not None
        return state

    def pids(self) -> dict[str, int]:
        alive = [part for part in self.state.alive if part.condition != "draining"]
        return {part.name: part.process.pid for part in alive if part.process}

    @property
    def envoy(self) -> str:
        return next(part.address for part in self.state.parts if part.name == "envoy")

    def replicas(self) -> list[int]:
        found = []
        for process in psutil.process_iter(["environ"]):
            environment = process.info["environ"] or {}
            if environment.get(KEEPER) == keeper_of(self.home.root):
                found.append(process.pid)
        return sorted(found)


@pytest.fixture(scope="module")
def module_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """One for all tests here: a start of all this takes seconds."""
    home = Home(tmp_path_factory.mktemp("machine") / ".rollway")
    kept = {name: value for name, value in os.environ.items() if name not in {"DATABASE_URL", "REDIS_URL"}}
    made = Machine(home, {**kept, "ROLLWAY_HOME": str(home.root)})
    try:
        yield made
    finally:
        made.rollway("down", "--yes")
        assert made.replicas() == []


@pytest.fixture
def machine(module_machine: Machine) -> Machine:
    """One whose deployment `web` is up, also after a test that ended it."""
    if read_state(module_machine.home) is None:
        module_machine.rollway("up", "--workers", "1")
        module_machine.rollway("apply", "-f", "examples/web.yaml", "--wait")
        eventually(lambda: len(module_machine.replicas()) == 3, what="its replicas to be up")
    return module_machine


@pytest.fixture
def load(machine: Machine) -> Iterator[Load]:
    """A hundred requests a second, until the test ends."""
    with running(demo_load(machine.envoy, "web")) as load:
        yield load


def test_no_request_is_lost_by_a_dead_supervisor_a_restart_and_a_stop_that_keeps_the_replicas(
    machine: Machine, load: Load
) -> None:
    before, replicas = machine.pids(), machine.replicas()
    assert len(replicas) == 3

    os.kill(machine.state.supervisor.pid, signal.SIGKILL)
    eventually(lambda: machine.rollway("status")["stack"]["phase"] == "lost")
    machine.rollway("up")
    assert machine.pids() == before

    machine.rollway("restart")
    after = machine.pids()
    assert [name for name in before if after[name] == before[name]] == ["envoy"]

    with ThreadPoolExecutor() as clients:  # what an Envoy that is restarted has under way outlives all that follows
        slow = f"{machine.envoy}/web/slow?seconds=12"
        under_way = [clients.submit(plain_http.get, slow, timeout=600) for _ in range(6)]
        eventually(lambda: _active(machine.home.envoy_admin()) >= len(under_way))
        machine.rollway("restart", "--part", "envoy")
        new = machine.pids()["envoy"]
        assert new != before["envoy"]

        machine.rollway("down", "--keep-replicas")
        assert list(machine.pids()) == ["envoy"]
        machine.rollway("up")
        assert machine.pids()["envoy"] == new, "which ends where the old one is ended"
        assert [answer.result().status_code for answer in under_way] == [200] * len(under_way)

    load.stop()
    assert load.tally.requests > 500
    assert load.tally.failed == {}
    assert machine.replicas() == replicas


STREAMS = """
import http.server, os, time

class Streams(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        number = 0
        while self.path == "/long" and not os.path.exists("END"):
            self.wfile.write(b"9\\r\\n%8d\\n\\r\\n" % number)
            number += 1
            time.sleep(0.1)
        self.wfile.write(b"0\\r\\n\\r\\n")

http.server.ThreadingHTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Streams).serve_forever()
"""
"""An answer that ends when there is a file END; SIGTERM ends it at once."""


def test_a_stream_longer_than_any_grace_survives_a_rollout_byte_for_byte(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "streams.py").write_text(STREAMS)
    file = tmp_path / "streams.yaml"

    def apply(version: str) -> None:
        command = [sys.executable, "streams.py"]
        revision = {"name": version, "command": command, "health_check": {"path": "/"}, "env": {"VERSION": version}}
        policy = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
        document = {"deployment": "streams", "replicas": 1, "policy": policy}
        file.write_text(json.dumps({**document, "revision": {**revision, "working_directory": str(tmp_path)}}))
        machine.rollway("apply", "-f", str(file), "--wait")

    apply("v1")
    url = f"{machine.envoy}/streams/long"
    with httpx.stream("GET", url, trust_env=False, verify=False, timeout=600) as answer:  # plain HTTP
        lines = answer.iter_lines()
        got = [next(lines) for _ in range(3)]
        apply("v2")
        got += [next(lines) for _ in range(60)]  # six seconds, three times the fixed grace
        (tmp_path / "END").touch()
        got += list(lines)
    assert got == [f"{number:8}" for number in range(len(got))]
    machine.rollway("destroy", "streams", "--yes", "--wait")


def test_down_asks_at_a_terminal_and_says_how_many_replicas_it_would_stop(machine: Machine) -> None:
    """A pseudo-terminal, and somebody who says no."""
    before, (ours, theirs) = machine.pids(), os.openpty()
    os.write(ours, b"n\n")
    command = [sys.executable, "-m", "cli.main", "down"]
    ended = subprocess.run(
        command, cwd=project_root(), env=machine.environment, stdin=theirs, capture_output=True, text=True, check=False
    )
    os.close(ours)
    os.close(theirs)
    assert ended.returncode == 1
    assert "Stop all, and 3 replicas with it? (--keep-replicas leaves those serving)" in ended.stderr
    assert machine.pids() == before


def test_down_lets_what_is_in_flight_end_and_says_how_many_replicas_it_stopped(machine: Machine) -> None:
    address = machine.envoy
    with ThreadPoolExecutor() as clients:
        slow = [clients.submit(plain_http.get, f"{address}/web/slow?seconds=4") for _ in range(6)]
        eventually(lambda: _active(machine.home.envoy_admin()) == len(slow))
        said = machine.rollway("down", "--yes")
        assert [answer.result().status_code for answer in slow] == [200] * len(slow)
    assert (said["replicas"], said["stopped_replicas"]) == (3, 3)
    with pytest.raises(httpx.ConnectError):
        plain_http.get(address)
