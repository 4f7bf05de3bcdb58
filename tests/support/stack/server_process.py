"""A server of its own process, for tests: started, frozen, killed."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from stack.home.folder import project_root
from tests.support.proxies import plain_http
from tests.support.stack.forked import Forked, start
from tests.support.stack.waiting import eventually


def suspend(pid: int) -> None:
    """SIGSTOP. It stands still when this returns: on a busy machine it may do much before the signal reaches it."""
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: psutil.Process(pid).status() == psutil.STATUS_STOPPED)


@dataclass
class Process:
    """A process that may be killed and started again, on the same port."""

    command: list[str]
    port: int
    log: Path
    ready: str
    environment: dict[str, str] = field(default_factory=dict)
    code: Path = field(default_factory=project_root)
    process: Forked | subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def begin(self) -> None:
        """Start it, and do not wait."""
        with self.log.open("ab") as log:
            self.process = start(self.command, {**os.environ, **self.environment}, self.code, log)

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.begin()
        try:
            eventually(self.answers, what=f"{self.command[:3]} is ready")
        except AssertionError:
            self.end(kill=True)
            raise

    def stat(self, name: str) -> int:
        """One of Envoy's own counters, once it has it."""
        url, asked = f"{self.ready.rpartition('/')[0]}/stats", {"filter": f"^{name}$", "format": "json"}
        (found,) = eventually(lambda: plain_http.get(url, params=asked).json()["stats"])
        return int(found["value"])

    def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            return plain_http.get(self.ready).status_code == 200
        except httpx.TransportError:
            return False

    def freeze(self) -> None:
        assert self.process is not None
        suspend(self.process.pid)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def end(self, *, kill: bool = False) -> float:
        """End it; returns how many seconds that took."""
        assert self.process is not None
        began = time.monotonic()
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        self.process.wait(15)
        return time.monotonic() - began


@contextmanager
def running(process: Process) -> Iterator[None]:
    """Started now, and killed in the end."""
    process.start()
    try:
        yield
    finally:
        process.end(kill=True)
