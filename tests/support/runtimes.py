"""Real replicas to test with."""

import sys
from pathlib import Path
from uuid import UUID, uuid4

import psutil

from domain.replicas.revision import RevisionSpec
from runtime.base import Replica, ReplicaRequest
from runtime.process import ProcessRuntime
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
HTTP_SERVICE = (sys.executable, str(ROOT / "examples" / "http_service.py"))
SLEEPER = ("sleep", "60")


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def request(
    command: tuple[str, ...] = SLEEPER, *, route_id: UUID | None = None, env: dict[str, str] | None = None
) -> ReplicaRequest:
    return ReplicaRequest(route_id or uuid4(), "web", "web-12345678", RevisionSpec(command=command, env=env or {}))


def ended(runtime: ProcessRuntime, route_id: UUID) -> Replica:
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


def processes_of(home: Path, route_id: UUID | None = None) -> list[int]:
    """Every running process, descendants too, that carries this home (and route id) in its environment.

    A program that is just being loaded has none yet: after a start, wait until it shows.
    """
    found = []
    for process in psutil.process_iter():
        try:
            env = process.environ()
        except psutil.Error:
            continue
        if env.get("ROLLWAY_HOME") == str(home) and (route_id is None or env.get("ROLLWAY_ROUTE") == str(route_id)):
            found.append(process.pid)
    return found


def log_of(runtime: ProcessRuntime, route_id: UUID, text: str) -> str:
    """The log, once `text` has appeared in it."""
    eventually(lambda: text in runtime.log_tail(route_id, 1000))
    return runtime.log_tail(route_id, 1000)
