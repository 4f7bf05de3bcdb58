"""Callers of one deployment: requests when they are due, whatever became of those before, and what became of each."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Load:
    """`rate` requests a second by `method`; a caller waits for `patience` seconds and then leaves."""

    method: str = "GET"
    rate: float = 30
    patience: float = 15


class End(NamedTuple):
    """What became of a request. `sent`: when, by the steady clock; an answer has a status below 500."""

    sent: float
    is_answered: bool


@dataclass
class Callers:
    """What became of them, in the order of their ends."""

    load: Load
    port: int
    host: str
    ends: list[End] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    async def run(self) -> None:
        """Send until it is over, and wait for those under way."""
        loop = asyncio.get_running_loop()
        began, sent, open_ones = loop.time(), 0, set[asyncio.Task[None]]()
        while not self.over.is_set():
            due = began + sent / self.load.rate
            await asyncio.sleep(max(0.0, due - loop.time()))
            sent += 1
            task = loop.create_task(self._one())
            open_ones.add(task)
            task.add_done_callback(open_ones.discard)
        await asyncio.gather(*open_ones)

    async def _one(self) -> None:
        sent = time.monotonic()
        try:
            status = await asyncio.wait_for(self._asked(), self.load.patience)
        except (TimeoutError, OSError, ValueError, IndexError):
            status = 599
        self.ends.append(End(sent, status < 500))

    async def _asked(self) -> int:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            headers = f"Host: {self.host}\r\nContent-Length: 0\r\nConnection: close\r\n"
            writer.write(f"{self.load.method} / HTTP/1.1\r\n{headers}\r\n".encode())
            return int((await reader.readline()).split()[1])
        finally:
            writer.close()


@contextmanager
def calling(load: Load, port: int, host: str) -> Iterator[Callers]:
    """They ask until the block ends, in a thread of their own."""
    callers = Callers(load, port, host)
    thread = threading.Thread(target=lambda: asyncio.run(callers.run()))
    thread.start()
    try:
        yield callers
    finally:
        callers.over.set()
        thread.join()
