"""Which process a pid meant when it was written down, whatever happens to pids, to the clock and to the machine."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import psutil
from pydantic import Field

_TOLERANCE_SECONDS = 0.05
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Identity:
    """A process beyond doubt. A recycled pid has another start or another boot; a clock that is set changes neither.

    `started`: seconds after the machine's boot; `boot`: which boot that was, empty where the system does not say.
    """

    pid: Annotated[int, Field(gt=1)]
    started: float
    boot: str


def identify(pid: int) -> Identity | None:
    """The identity of a process that runs or was not reaped yet; None when there is none of that pid."""
    seen = _seen(pid)
    return Identity(pid, seen[1], _boot()) if seen else None


def is_alive(identity: Identity | None) -> bool:
    """Whether this very process still runs. A zombie has ended."""
    if identity is None:
        return False
    seen = _seen(identity.pid)
    return seen is not None and not seen[0] and _is_the_start_of(identity, seen[1])


def is_unreaped(identity: Identity) -> bool:
    """Whether this very process runs or is a zombie, which keeps its pid and the number of its session."""
    seen = _seen(identity.pid)
    return seen is not None and _is_the_start_of(identity, seen[1])


def process_of(identity: Identity) -> psutil.Process | None:
    """The process, if this very one still runs."""
    try:
        return psutil.Process(identity.pid) if is_alive(identity) else None
    except psutil.Error:
        return None


def _is_the_start_of(identity: Identity, started: float) -> bool:
    return identity.boot == _boot() and abs(started - identity.started) < _TOLERANCE_SECONDS


def _seen(pid: int) -> tuple[bool, float] | None:
    """Whether it is a zombie, and when it was started; None when there is none. One read where there is /proc."""
    try:
        state, *rest = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return state == b"Z", int(rest[18]) / _TICKS
    except (OSError, ValueError):
        return _seen_without_proc(pid)


def _seen_without_proc(pid: int) -> tuple[bool, float] | None:
    try:
        process = psutil.Process(pid)
        return process.status() == psutil.STATUS_ZOMBIE, process.create_time() - psutil.boot_time()
    except psutil.Error:
        return None


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
