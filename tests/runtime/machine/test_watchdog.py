"""systemd is told that a process is alive, where it asks for it, and by real processes."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runtime.machine.watchdog import pause, tell
from tests.support.stack.server_process import suspend

ASK = """
import os, time
os.environ["WATCHDOG_PID"] = str(os.getpid())
from runtime.machine.watchdog import keep_alive
keep_alive()
time.sleep(1000)
"""


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    path = str(tmp_path / "notify")
    monkeypatch.setenv("NOTIFY_SOCKET", path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.bind(path)
        made.settimeout(30)
        yield made


def test_it_is_told_where_somebody_listens(listener: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    tell("READY=1")
    assert listener.recv(100) == b"READY=1"
    for nobody in ("", "nonsense", "/nowhere/at/all"):
        monkeypatch.setenv("NOTIFY_SOCKET", nobody)
        tell("READY=1")


@pytest.mark.parametrize(
    ("asked", "of", "seconds"),
    [
        ("30000000", "this", 10),
        ("30000000", "", 10),
        ("30000000", "1", None),  # another process is asked, which gave its environment to this one
        ("", "", None),
        ("soon", "", None),
        ("9000000000", "", 60),
    ],
)
def test_as_often_as_it_asks_for(monkeypatch: pytest.MonkeyPatch, asked: str, of: str, seconds: float | None) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", asked)
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if of == "this" else of)
    assert pause() == seconds


def test_a_process_that_is_frozen_tells_nothing(listener: socket.socket) -> None:
    environment = {**os.environ, "WATCHDOG_USEC": "300000"}
    with subprocess.Popen([sys.executable, "-c", ASK], env=environment) as process:
        try:
            assert listener.recv(100) == b"WATCHDOG=1"
            assert listener.recv(100) == b"WATCHDOG=1"
            suspend(process.pid)
            with pytest.raises(TimeoutError):
                _drain(listener, seconds=1)
            process.send_signal(signal.SIGCONT)
            assert listener.recv(100) == b"WATCHDOG=1"
        finally:
            process.kill()


def _drain(listener: socket.socket, seconds: float) -> None:
    listener.settimeout(seconds)
    receive: Callable[[int], bytes] = listener.recv
    try:
        while receive(100):
            pass
    finally:
        listener.settimeout(30)
