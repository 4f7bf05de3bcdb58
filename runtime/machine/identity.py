"""Identifies a process beyond its pid, whatever happens to pids, clock and machine."""

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import psutil
from pydantic import Field

_TOLERANCE_SECONDS = 0.05
_LOOK_AGAIN_SECONDS = 0.002
_TICKS = os.sysconf("SC_CLK_TCK")
_STATES = {b"Z": psutil.STATUS_ZOMBIE, b"T": psutil.STATUS_STOPPED}


@dataclass(frozen=True, slots=True)
class Identity:
    """The identity of a process. A recycled pid has another start or another boot; setting the clock changes neither.

    `started`: seconds after the machine's boot; `boot`: the id of that boot, empty where the system has none.
    """

    pid: Annotated[int, Field(gt=1)]
    started: float
    boot: str


def identify(pid: int) -> Identity | None:
    """The identity of a process that runs or was not reaped yet; None when no process has that pid."""
    sighting = _sighting(pid)
    return Identity(pid, sighting[1], _boot()) if sighting else None


def is_alive(identity: Identity | None) -> bool:
    """Whether this very process still runs. A zombie has ended."""
    return identity is not None and _state(identity) not in (None, psutil.STATUS_ZOMBIE)


def is_unreaped(identity: Identity) -> bool:
    """Whether this very process runs or is a zombie, which keeps its pid and the number of its session."""
    return _state(identity) is not None


def send(identity: Identity | None, number: int) -> None:
    """Send a signal to this very process; nothing happens when it is gone."""
    _send(identity, number, os.kill)


def send_to_group(identity: Identity | None, number: int) -> None:
    """Send a signal to this very process, and to its process group when it leads one; nothing when it is gone."""
    _send(identity, number, _kill_group)


def wait_for_end(identity: Identity | None, seconds: float) -> None:
    """Return when this very process has ended, or after `seconds`."""
    deadline = time.monotonic() + seconds
    while is_alive(identity) and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN_SECONDS)


def kill_if_stopped(pid: int) -> bool:
    """Send SIGKILL to a process that is stopped, as after SIGSTOP or Ctrl-Z. Returns whether it was sent."""
    sighting = _sighting(pid)
    if sighting is None or sighting[0] != psutil.STATUS_STOPPED:
        return False
    send(identify(pid), signal.SIGKILL)
    return True


def _kill_group(pid: int, number: int) -> None:
    (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, number)


def _send(identity: Identity | None, number: int, kill: Callable[[int, int], None]) -> None:
    if identity is not None and is_alive(identity):
        with suppress(ProcessLookupError, PermissionError):
            kill(identity.pid, signal.Signals(number))


def _state(identity: Identity) -> str | None:
    """The process for psutil; None when this very process is gone."""
    sighting = _sighting(identity.pid)
    if sighting is None or identity.boot != _boot() or abs(sighting[1] - identity.started) >= _TOLERANCE_SECONDS:
        return None
    return sighting[0]


def _sighting(pid: int) -> tuple[str, float] | None:
    """The state of a process and the time of its start; None when it is gone. A single read where there is /proc."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return _STATES.get(state, psutil.STATUS_RUNNING), int(rest[18]) / _TICKS
    except (OSError, ValueError):
        pass  # it is gone, or this system has no /proc
    try:
        process = psutil.Process(pid)
        return process.status(), process.create_time() - psutil.boot_time()
    except psutil.Error:
        return None


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


HAS_PROC = Path("/proc/self/environ").exists()

IsOwner = Callable[[int], bool]
"""Whether a process of the user of that number is meant."""


def may_be_of(pid: int, is_owner: IsOwner) -> bool:
    """Whether a process may be of these owners. One that is gone is not; one that may not be traced is always.

    The system shows root for the owner of those, and a system without /proc shows nobody.
    """
    try:
        uid = os.stat(f"/proc/{pid}").st_uid  # noqa: PTH116  # half the price of a Path
    except OSError:
        return not HAS_PROC
    return uid == 0 or is_owner(uid)
