"""Waiting for a condition, never for seconds."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import httpx
import psycopg

T = TypeVar("T")


class NotInTimeError(AssertionError):
    """The condition did not come true; the message names it."""


def eventually(look: Callable[[], T | None], within: float = 120.0, what: str = "") -> T:
    """The first true result of `look`. Raises NotInTimeError, naming what was waited for, after `within` seconds.

    The time is long, because a busy machine may need it and nobody waits for it otherwise. A server that does not
    answer is one that a test has just killed: the next look may find it again.
    """
    deadline, pause = time.monotonic() + within, 0.005
    error: Exception | None = None
    while time.monotonic() < deadline:
        try:
            if found := look():
                return found
        except (psycopg.OperationalError, httpx.TransportError) as away:
            error = away
        time.sleep(pause)
        pause = min(pause * 1.3, 0.1)
    raise NotInTimeError(f"not within {within:g} s: {what or look}") from error


@contextmanager
def meanwhile(work: Callable[[], object], pause: float) -> Iterator[None]:
    """Do the work again and again in a thread of its own, `pause` seconds apart, until the block ends."""
    over = threading.Event()

    def again() -> None:
        while not over.wait(pause):
            work()

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
