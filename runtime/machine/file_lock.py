"""A file that one holder at a time may lock, among all threads and processes of this host."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_RETRY_SECONDS = 0.002
_LONG_SECONDS = 0.5
_LONGEST_COMMAND = 80
_LOCKS = Path("/proc/locks")
"""1: FLOCK  ADVISORY  WRITE 4711 fe:01:4202 0 EOF"""


@contextmanager
def file_lock(path: Path, patience_seconds: float, on_wait: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock on `path`, whose folder must exist; `on_wait` is called once when somebody else holds it.

    Raises TimeoutError after the patience: a process that is stopped while it holds the lock hangs nobody for ever.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _is_taken_by_us(descriptor):
            on_wait()
            _wait_for(descriptor, path, patience_seconds)
        yield
    finally:
        os.close(descriptor)


def holder_of(path: Path) -> int | None:
    """The pid of the process that holds the lock on `path`; None when there is none, or the system does not say."""
    try:
        held, table = path.stat(), _LOCKS.read_text()
    except OSError:
        return None
    where = f"{os.major(held.st_dev):02x}:{os.minor(held.st_dev):02x}:{held.st_ino}"
    rows = (row.split() for row in table.splitlines())
    return next((int(pid) for _, kind, _, _, pid, at, *_ in rows if (kind, at) == ("FLOCK", where)), None)


def stuck_holder_of(path: Path) -> int | None:
    """The pid of a process that has held the lock on `path` for too long; None when there is none."""
    pid = holder_of(path)
    if pid is None:
        return None
    time.sleep(_LONG_SECONDS)
    return pid if holder_of(path) == pid else None


def named(pid: int) -> str:
    """Say which process that is: process 4711 (python -m celery worker)."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        words = []
    command = " ".join(words).strip()[:_LONGEST_COMMAND]
    return f"process {pid} ({command})" if command else f"process {pid}"


def _wait_for(descriptor: int, path: Path, patience_seconds: float) -> None:
    deadline = time.monotonic() + patience_seconds
    while not _is_taken_by_us(descriptor):
        if time.monotonic() > deadline:
            pid = holder_of(path)
            who = named(pid) if pid else "another process"
            raise TimeoutError(f"{who} has held {path} for {patience_seconds:g} s")
        time.sleep(_RETRY_SECONDS)


def _is_taken_by_us(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
