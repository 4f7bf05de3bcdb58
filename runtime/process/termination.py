"""Ends replicas of a runtime on this host: SIGTERM first, SIGKILL after a grace, then their records."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import UUID

from runtime.process.process_runtime import ProcessRuntime
from runtime.process.record import RecordFolder
from runtime.protocol import Runtime

_KILL_PATIENCE_SECONDS = 2.0
_ASK_AGAIN_SECONDS = 0.02


def stop_all(home: Path, grace_seconds: float = 5.0, report: Callable[[int], None] = lambda _: None) -> int:
    """End and forget all replicas of `home`, as `end_everyone` does; return how many were running.

    Stop the workers first, or they start replicas meanwhile.
    """
    if not home.is_dir():
        return 0
    runtime = ProcessRuntime(home)
    ended = end_everyone(runtime, grace_seconds, report)
    for route_id in RecordFolder(home).route_ids():
        runtime.forget(route_id)
    return ended


def end_everyone(runtime: Runtime, grace_seconds: float, report: Callable[[int], None] = lambda _: None) -> int:
    """End all replicas and return how many ran. Stop the workers first, or they start more. May raise OSError.

    `report` hears how many run on, each time that some have ended.
    """
    replicas = runtime.everyone()
    running = [replica.route_id for replica in replicas if replica.running]
    end(runtime, running, grace_seconds, report)
    for replica in replicas:
        runtime.forget(replica.route_id)
    return len(running)


def end(
    runtime: Runtime, route_ids: Sequence[UUID], grace_seconds: float, report: Callable[[int], None] = lambda _: None
) -> None:
    """End these replicas: SIGTERM to all, SIGKILL to those that still run after the grace. May raise OSError."""
    for route_id in route_ids:
        runtime.terminate(route_id)
    stubborn = _still_running(runtime, route_ids, grace_seconds, report)
    for route_id in stubborn:
        runtime.kill(route_id)
    _still_running(runtime, stubborn, _KILL_PATIENCE_SECONDS, report)


def _still_running(
    runtime: Runtime, route_ids: Sequence[UUID], seconds: float, report: Callable[[int], None]
) -> Sequence[UUID]:
    """The replicas that have not ended after `seconds`; returns as soon as all have."""
    deadline = time.monotonic() + seconds
    while True:
        before = len(route_ids)
        route_ids = [route_id for route_id in route_ids if (replica := runtime.find(route_id)) and replica.running]
        if len(route_ids) < before:
            report(len(route_ids))
        if not route_ids or time.monotonic() >= deadline:
            return route_ids
        time.sleep(_ASK_AGAIN_SECONDS)
