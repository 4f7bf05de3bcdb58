"""The replica of the measurements does what it is told, and ends as it is told."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from cli.demo.load.generator import LoadSettings
from cli.demo.load.mix import Kind
from stack.home.folder import project_root
from tests.support.proxies import plain_http
from tests.support.proxies.treated import load, run, whole
from tests.support.stack.ports import free_port
from tools.bench.load import running_load


@contextmanager
def replica(**env: str) -> Iterator[tuple[str, "subprocess.Popen[bytes]"]]:
    """tools/bench/replica.py as Rollway starts it."""
    port = free_port()
    told = {"PORT": str(port), "ROLLWAY_REVISION": "v1", "ROLLWAY_ROUTE": "r1", **env}
    process = subprocess.Popen(
        [sys.executable, "tools/bench/replica.py"],
        cwd=project_root(),
        env={**os.environ, **told},
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 10
        while process.poll() is None and time.monotonic() < until:
            with suppress(httpx.TransportError):
                plain_http.get(f"http://127.0.0.1:{port}/health")
                break
            time.sleep(0.02)
        yield f"127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()


def test_the_whole_mix_is_answered_by_the_replica() -> None:
    with replica() as (address, _):
        mix = dict.fromkeys(Kind, 1.0)
        settings = LoadSettings(address=address, host="web", rate=60, seconds=1, mix=mix)
        phase = asyncio.run(run(settings))
    assert phase.failures == ()
    assert set(phase.kinds) == set(Kind)
    assert phase.revisions["v1"].answers == phase.requests == 60
    assert phase.p50 < 0.2


def test_a_replica_that_is_told_to_end_finishes_what_is_in_flight() -> None:
    with replica() as (address, process):
        settings = LoadSettings(address=address, host="web", rate=20, seconds=0.4, mix={Kind.SLOW_POST: 1.0})
        with running_load(settings) as running:
            time.sleep(0.8)
            process.send_signal(signal.SIGTERM)
            phase = whole(running.wait())
        assert process.wait(timeout=5) == 0
    assert phase.failures == ()
    assert phase.requests == 8


def test_a_replica_that_knows_no_sigterm_takes_what_is_in_flight_with_it() -> None:
    with replica(ENDS="at-once") as (address, process):
        settings = LoadSettings(address=address, host="web", rate=20, seconds=0.2, mix={Kind.SLOW_POST: 1.0})
        with running_load(settings) as running:
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            phase = whole(running.wait())
        assert process.wait(timeout=5) == -signal.SIGTERM
    assert phase.failed == {"reset": 4}


def test_a_replica_closes_idle_connections_when_it_is_told_to_end() -> None:
    with replica() as (address, process), httpx.Client(trust_env=False, verify=False) as client:
        client.get(f"http://{address}/")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 0


@pytest.mark.parametrize(
    ("fault", "failed"), [({"fault": "reset"}, "reset"), ({"fault": "hang"}, "no answer"), ({"fault": 404}, "404")]
)
def test_a_fault_befalls_the_requests_of_its_method(fault: dict[str, object], failed: str) -> None:
    with replica(FAULTS=json.dumps({"share": 1, "of": "POST", **fault})) as (address, _):
        posts = load(address, Kind.POST_CLOSE, rate=20, timeout=3)
        gets = load(address, Kind.GET_CLOSE, rate=20)
    assert (posts.failed, gets.failed) == ({failed: 8}, {})


def test_a_replica_answers_late_or_not_while_something_is_away_and_closes_what_is_idle(tmp_path: Path) -> None:
    away = tmp_path / "away"
    with replica(FAULTS=json.dumps({"takes": 0.2, "idle": 0.1, "away": str(away)})) as (address, _):
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=5) as connection:
            began = time.monotonic()
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert connection.recv(10_000).startswith(b"HTTP/1.1 200 OK")
            assert time.monotonic() - began >= 0.2
            assert connection.recv(10_000) == b"", "it was closed"
        away.touch()
        assert [plain_http.get(f"http://{address}{path}").status_code for path in ("/health", "/")] == [200, 503]


def test_a_replica_can_be_broken() -> None:
    with replica(BROKEN="health") as (address, _):
        assert plain_http.get(f"http://{address}/health").status_code == 503
    with replica(FAULTS='{"share": 1, "fault": 500}') as (address, _):
        assert [plain_http.get(f"http://{address}{path}").status_code for path in ("/health", "/")] == [200, 500]
    with replica(BROKEN="start") as (_, process):
        assert process.wait(timeout=5) == 1
    with replica(STARTUP_SECONDS="60") as (address, _):
        assert plain_http.get(f"http://{address}/health").status_code == 503
