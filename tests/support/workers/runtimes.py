"""Real replicas to test with."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID, uuid4

import psutil

from domain.revisions.revision import RevisionSpec
from runtime.process.account_pool import REGISTRY
from runtime.process.process_runtime import ProcessRuntime
from runtime.process.process_table import KEEPER, keeper_of
from runtime.protocol import Replica, ReplicaRequest, Runtime
from tests.support.stack.waiting import eventually

ROOT = Path(__file__).parents[3]
HTTP_SERVICE = (sys.executable, str(ROOT / "examples" / "http_service.py"))
LEAN_SERVICE = (sys.executable, str(ROOT / "tools" / "bench" / "replica.py"))
"""A service that ends TLS itself too, if it is given a CERTIFICATE and its KEY."""
SLEEPER = ("sleep", "60")


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def request(
    command: tuple[str, ...] = SLEEPER, *, route_id: UUID | None = None, env: dict[str, str] | None = None
) -> ReplicaRequest:
    return ReplicaRequest(route_id or uuid4(), "web", "web-12345678", RevisionSpec(command=command, env=env or {}))


def ended(runtime: Runtime, route_id: UUID) -> Replica:
    def look() -> Replica | None:
        replica = runtime.find(route_id)
        return replica if replica and not replica.running else None

    return eventually(look)


def pid_of(replica: Replica | None) -> int:
    assert replica
    return int(replica.handle.removeprefix("pid:"))


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def environments_of(home: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Every running process, descendants too, that carries this home in its environment; its pid, and all it carries.

    A program that is just being loaded carries nothing yet: after a start, wait until it shows.
    """
    for process in psutil.process_iter():
        try:
            carried = process.environ()
        except psutil.Error:
            continue
        if carried.get(KEEPER) == keeper_of(home):
            yield process.pid, carried


def processes_of(home: Path, route_id: UUID | None = None) -> list[int]:
    """The pids of those, or of those that carry this route id too."""
    return [
        pid
        for pid, carried in environments_of(home)
        if route_id is None or carried.get("ROLLWAY_ROUTE") == str(route_id)
    ]


def log_of(runtime: ProcessRuntime, route_id: UUID, text: str) -> str:
    """The log, once `text` has appeared in it."""
    eventually(lambda: text in runtime.log_tail(route_id, 1000))
    return runtime.log_tail(route_id, 1000)


@contextmanager
def given_back(home: Path) -> Iterator[None]:
    """In the end the accounts that deployments of this home got of this machine are given back."""
    yield
    for taken in REGISTRY.iterdir() if os.access(REGISTRY, os.R_OK) else ():
        if taken.is_symlink() and taken.readlink() == home.resolve():
            taken.unlink()
