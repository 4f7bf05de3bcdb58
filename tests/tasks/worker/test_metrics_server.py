"""The metrics of a worker or a beat, on a port of their own: one client at a time, and none for long."""

import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

from tasks.task_settings import TaskSettings
from tasks.telemetry.metrics_server import expose
from tests.support.proxies import plain_http
from tests.support.rows.deployments import NOBODY
from tests.support.stack.ports import free_port
from tests.support.stack.waiting import eventually


def settings(port: int | None, home: Path) -> TaskSettings:
    return TaskSettings(redis_url=NOBODY, home=home, metrics_port=port)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> str:
    port = free_port()
    expose(settings(port, tmp_path_factory.mktemp("home")))
    eventually(lambda: plain_http.get(f"http://127.0.0.1:{port}/metrics").status_code == 200)
    return f"http://127.0.0.1:{port}"


def test_without_a_port_nothing_listens(tmp_path: Path) -> None:
    assert expose(settings(None, tmp_path)) is None


def test_metrics_are_shown_and_nothing_else(shown: str) -> None:
    text = plain_http.get(f"{shown}/metrics").text
    assert "rollway_home_free_bytes" in text
    assert "process_resident_memory_bytes" in text
    assert plain_http.get(f"{shown}/").status_code == 404
    assert plain_http.post(f"{shown}/metrics").status_code == 501


def test_who_asks_slowly_is_cut_and_the_next_one_is_answered(shown: str) -> None:
    address = ("127.0.0.1", int(shown.rpartition(":")[2]))
    began = time.monotonic()
    with closing(socket.create_connection(address)) as silent, closing(socket.create_connection(address)) as other:
        other.sendall(b"GET /metr")
        assert plain_http.get(f"{shown}/metrics", timeout=20).status_code == 200
        assert silent.recv(10) == b""
    assert time.monotonic() - began < 30


def test_a_port_that_is_taken_is_shown_on_as_soon_as_it_is_free(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.telemetry.metrics_server._TRY_AGAIN_SECONDS", 0.1)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = int(taken.getsockname()[1])
        expose(settings(port, tmp_path_factory.mktemp("home")))  # it is looked at until the process ends
        time.sleep(0.3)
    assert eventually(lambda: plain_http.get(f"http://127.0.0.1:{port}/metrics").status_code == 200)
