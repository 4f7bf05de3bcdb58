"""How parts are stopped, always in the same order: by the supervisor, or by `down` when the supervisor was killed."""

import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from runtime.identity import Identity, is_alive, send
from stack.home import Home
from stack.state import PartState

_LOG = logging.getLogger(__name__)
_POLL = 0.05
_CONTAINER_GRACE = 5.0


def stop_in_order(
    home: Home,
    parts: Sequence[PartState],
    stopped: Callable[[PartState], None],
    replicas: Callable[[Path], object] | None,
) -> None:
    """Stop beat, workers, Flower, xDS server; then the replicas by `replicas(home)`; then Envoy, Valkey, PostgreSQL.

    Envoy comes after the replicas because it carries the answers to the requests that they still finish.
    `stopped` gets each part that was running, once it has ended.
    """
    _stop_together([part for part in parts if not part.server], stopped)
    if replicas is not None:
        _stop_anyway(replicas, home.root)
    for server in reversed([part for part in parts if part.server]):
        _stop_together([server], stopped)


def stop_replicas(home: Path) -> None:
    """End every process and container that Rollway started here. Only this function of the stack knows of replicas."""
    from runtime.docker import DockerRuntime  # noqa: PLC0415 -- only `down` needs them, and `up` shall start fast
    from runtime.docker_container import owner_of  # noqa: PLC0415
    from runtime.ending import end_everyone  # noqa: PLC0415
    from runtime.process import stop_all  # noqa: PLC0415

    stop_all(home)
    host = os.environ.get("ROLLWAY_HOST") or socket.gethostname()
    with suppress(OSError):  # on most hosts there is no engine, and so there are no containers
        end_everyone(DockerRuntime(owner_of(host, home)), _CONTAINER_GRACE)


def end_process(process: Identity | None, stop_signal: int, grace: float) -> None:
    """Ask this very process to end, and kill it after `grace` seconds. Returns when it is gone."""
    send(process, stop_signal)
    if not _gone(process, time.monotonic() + grace):
        send(process, signal.SIGKILL)
        _gone(process, time.monotonic() + 5)


def _stop_together(parts: Iterable[PartState], stopped: Callable[[PartState], None]) -> None:
    alive = [part for part in parts if is_alive(part.process)]
    began = time.monotonic()
    for part in alive:
        send(part.process, part.stop_signal)
    for part in alive:
        if not _gone(part.process, began + part.grace):
            send(part.process, signal.SIGKILL)
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
