"""Thousands of replicas in one small process, each a port of its own, that keep the times at which they were probed."""

import asyncio
import resource
import time
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"ok": true}'


class Answering(asyncio.Protocol):
    """A connection to one replica. `after` is in seconds; None: it never answers."""

    def __init__(self, after: float | None, arrivals: list[float]) -> None:
        self._after, self._arrivals = after, arrivals

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A probe is here."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        self._arrivals.append(time.monotonic())

    def data_received(self, _: bytes) -> None:
        """Answer now, later, or never."""
        if self._after == 0:
            self._answer()
        elif self._after is not None:
            asyncio.get_running_loop().call_later(self._after, self._answer)

    def _answer(self) -> None:
        self._transport.write(ANSWER)
        self._transport.close()


def serve(delays: Sequence[float | None], pipe: Connection) -> None:
    """Be that many replicas: send their ports, and when asked, when each of them was probed."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_serve(delays, pipe))


async def _serve(delays: Sequence[float | None], pipe: Connection) -> None:
    loop, asked = asyncio.get_running_loop(), asyncio.Event()
    arrivals: list[list[float]] = [[] for _ in delays]
    ports = []
    for delay, arrived in zip(delays, arrivals, strict=True):
        server = await loop.create_server(partial(Answering, delay, arrived), "127.0.0.1", 0, backlog=8)
        ports.append(server.sockets[0].getsockname()[1])
    pipe.send(ports)
    loop.add_reader(pipe.fileno(), asked.set)
    await asked.wait()
    pipe.send(arrivals)
    await asyncio.sleep(60)
