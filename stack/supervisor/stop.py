"""Stops parts, always in the same order: Envoy's requests first, then replicas within their grace."""

import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.machine.identity import Identity, is_alive, send_to_group
from stack.home.folder import Home, connected
from stack.home.server_settings import HOST
from stack.home.stack_state import PartState, read_state
from stack.parts.envoy import DRAIN_SECONDS

if TYPE_CHECKING:
    from runtime.docker.docker_runtime import DockerRuntime


_LOG = logging.getLogger(__name__)
_POLL = 0.05


def stop_in_order(
    home: Home,
    parts: Sequence[PartState],
    stopped: Callable[[PartState], None],
    replicas: Callable[[Path], object] | None,
) -> None:
    """Stop beat, workers, Flower, xDS server; then the replicas by `replicas(home)`; then Envoy, Valkey, PostgreSQL.

    Envoy comes after the replicas because it carries the answers to the requests that they still finish. Without
    `replicas` both are left alone: Envoy continues with the last table that it was told.
    `stopped` gets each part that was running, once it has ended.
    """
    stop_together([part for part in parts if not part.server], stopped)
    if replicas is not None:
        _stop_anyway(replicas, home.root)
    servers = [part for part in reversed(parts) if part.server and not (replicas is None and part.carries_requests)]
    for server in sorted(servers, key=lambda part: part.is_leaving):  # its successor would end with it
        stop_together([server], stopped)


def end_process(process: Identity | None, stop_signal: int, grace: float) -> None:
    """Ask this very process and its group to end, and kill them after `grace` seconds. Returns when it is gone."""
    send_to_group(process, stop_signal)
    if not _gone(process, time.monotonic() + grace):
        send_to_group(process, signal.SIGKILL)
        _gone(process, time.monotonic() + 5)


def stop_together(parts: Iterable[PartState], stopped: Callable[[PartState], None]) -> None:
    """Ask all to end at once, kill those that have not within their grace; `stopped` gets each when it has ended."""
    alive = [part for part in parts if is_alive(part.process)]
    began = time.monotonic()
    for part in alive:
        send_to_group(part.process, part.stop_signal)
    for part in alive:
        if not _gone(part.process, began + part.grace):
            send_to_group(part.process, signal.SIGKILL)
            _gone(part.process, time.monotonic() + 5)
        stopped(part)


def _gone(process: Identity | None, deadline: float) -> bool:
    while is_alive(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def _stop_anyway(replicas: Callable[[Path], object], home: Path) -> None:
    """Stop the replicas. Whatever goes wrong with one, the servers must still be stopped after it."""
    try:
        replicas(home)
    except Exception:  # noqa: BLE001 -- logged with its traceback
        _LOG.exception("replicas could not be stopped")


_PATIENCE = 10.0
_DRAIN_POLL = 0.1
_ACTIVE = "http.rollway.downstream_rq_active"


def drain_proxies(home: Home, say: Callable[[str], None]) -> None:
    """Return when each Envoy has closed its port and answered what it had accepted, after 11 s at most.

    Nothing happens when none runs here.
    """
    draining = [admin for admin in home.envoy.glob("*.sock") if _begins_to_drain(admin)]
    if not draining:
        return
    say("traffic is let out")
    time.sleep(DRAIN_SECONDS)
    deadline = time.monotonic() + _PATIENCE
    while (active := sum(map(_active, draining))) and time.monotonic() < deadline:
        time.sleep(_DRAIN_POLL)
    if active:
        say(f"{active} requests are still in flight after {_PATIENCE:g} s and will be cut")


def _begins_to_drain(admin: Path) -> bool:
    with suppress(OSError, HTTPException):
        _ask(admin, "POST", "/drain_listeners?graceful")
        return True
    return False


def _active(admin: Path) -> int:
    """The requests that this Envoy has not answered yet; none when it has ended."""
    with suppress(OSError, HTTPException):
        answer = _ask(admin, "GET", f"/stats?filter=^{_ACTIVE}$")
        return int(answer.rpartition(":")[2] or 0)
    return 0


def _ask(admin: Path, method: str, path: str) -> str:
    connection = HTTPConnection(HOST)
    try:
        connection.sock = connected(admin, timeout=2)
        connection.request(method, path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


LONGEST_GRACE = 60.0
_CONTAINER_GRACE = 10.0


def running_replicas(home: Path) -> int:
    """Count the replicas that run here, processes and containers."""
    from runtime.process.process_runtime import ProcessRuntime  # noqa: PLC0415 -- only `down` needs them, and `up` shall start fast

    count = 0
    if home.is_dir():
        count += sum(replica.running for replica in ProcessRuntime(home).everyone())
    with suppress(OSError):  # on most hosts there is no engine, and so there are no containers
        count += sum(replica.running for replica in _containers(home).everyone())
    return count


def stop_replicas(home: Path, say: Callable[[str], None] = lambda _: None) -> None:
    """Let no new request in, let those in flight end, then end every process and container that Rollway started here.

    A process gets the grace of its revision, at most 60 s; `say` hears how many are left.
    """
    from runtime.process.record import RecordFolder  # noqa: PLC0415
    from runtime.process.termination import end_everyone, stop_all  # noqa: PLC0415

    count = running_replicas(home)
    if count:
        drain_proxies(Home(home), say)
        say(f"stopping {count} replicas")

    def on_remaining(number: int) -> None:
        say(f"{number} replicas left" if number else "all replicas have ended")

    stop_all(home, min(RecordFolder(home).longest_grace(), LONGEST_GRACE), on_remaining)
    with suppress(OSError):
        end_everyone(_containers(home), _CONTAINER_GRACE, on_remaining)


def _containers(home: Path) -> "DockerRuntime":
    from runtime.docker.container import owner_of  # noqa: PLC0415
    from runtime.docker.docker_runtime import DockerRuntime  # noqa: PLC0415

    return DockerRuntime(owner_of(host_of(home), home))


def host_of(home: Path) -> str:
    """The host name of this stack's workers."""
    state = read_state(Home(home))
    host = state.environment.get("ROLLWAY_HOST") if state else None
    return host or os.environ.get("ROLLWAY_HOST") or socket.gethostname()
