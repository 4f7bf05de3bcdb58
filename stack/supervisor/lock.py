"""One `up` or `down` at a time in a home."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stack.errors import StackError, folder_errors
from stack.home import Home

_PATIENCE = 120.0


@contextmanager
def one_at_a_time(home: Home, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock of `home`; `waiting` is called once when another process has it. StackError after 120 s."""
    with folder_errors(home.lock_file):
        descriptor = os.open(home.lock_file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if not _taken(descriptor):
            waiting()
            _wait(descriptor, home)
        yield
    finally:
        os.close(descriptor)


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait(descriptor: int, home: Home) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not _taken(descriptor):
        if time.monotonic() > deadline:
            raise StackError(f"Another 'rollway up' or 'rollway down' has been at work in {home.root} for two minutes.")
        time.sleep(0.1)
