"""How parts are stopped, always in the same order: by `down`, or by a supervisor that was asked to end."""

import logging
import signal
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from runtime.machine.identity import Identity, is_alive, send_to_group
from stack.home.folder import Home
from stack.home.state import PartState

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
    `replicas` both are left alone: Envoy goes on with the last table that it was told.
    `stopped` gets each part that was running, once it has ended.
    """
    stop_together([part for part in parts if not part.server], stopped)
    if replicas is not None:
        _stop_anyway(replicas, home.root)
    for server in reversed(
        [part for part in parts if part.server and not (replicas is None and part.carries_requests)]
    ):
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
