"""Connections: how long each may wait for its client, and how many there may be.

A connection waits for its client, 10 s at most, until a whole request is here; then it is served, however long that
takes. When there are too many, the one goes that has waited longest: a proxy, whose requests come at once, does not.
"""

import asyncio
import re
import resource
from collections import OrderedDict
from contextlib import suppress
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

ACCEPTED_AT_ONCE = 128
"""The listen backlog: so many connections are taken in one go, before any of them can be refused."""
LONGEST_HEAD = 16_384
_END_OF_HEAD = re.compile(rb"\n\r?\n")
_WAIT_SECONDS = 10.0
_OTHER_FILES = 100  # Postgres, Redis, logs, threads' pipes


class Connections:
    """The connections of one server. `most`: how many there may be; half of them may wait for their clients."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: set[BoundedProtocol] = set()
        self._waiting: OrderedDict[BoundedProtocol, None] = OrderedDict()  # by when it began to wait

    def opened(self, connection: "BoundedProtocol") -> None:
        """One more, which waits for its first request."""
        self._open.add(connection)
        self.waits(connection)
        while len(self._open) > self._most or len(self._waiting) > self._most // 2:
            self._drop_oldest()

    def waits(self, connection: "BoundedProtocol") -> None:
        """The connection waits for its client from now on."""
        self._waiting[connection] = None

    def is_served(self, connection: "BoundedProtocol") -> None:
        """The request of the connection is here."""
        self._waiting.pop(connection, None)

    def closed(self, connection: "BoundedProtocol") -> None:
        """The connection is gone."""
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._waiting))  # the new one at least
        self.closed(oldest)
        oldest.transport.abort()


class BoundedProtocol(H11Protocol):
    """The one of uvicorn, which itself waits for a request for ever."""

    def __init__(self, *, connections: Connections, **uvicorns: Any) -> None:  # noqa: ANN401
        super().__init__(**uvicorns)
        self._connections = connections
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Asyncio's."""
        super().connection_made(transport)
        self._connections.opened(self)
        self._look()

    def data_received(self, data: bytes) -> None:
        """Asyncio's. A head that comes in one piece is as long as one that comes in many: h11 counts only these."""
        end = _END_OF_HEAD.search(data) if self.conn.their_state is h11.IDLE else None
        if end is not None and end.start() > LONGEST_HEAD:
            return self.send_400_response(f"The head of a request has {LONGEST_HEAD} bytes at most.")
        super().data_received(data)
        return self._look()

    def on_response_complete(self) -> None:
        """Note an answer that is complete, as uvicorn asks."""
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio's."""
        super().connection_lost(exc)
        self._connections.closed(self)
        self._stop_waiting()

    def _look(self) -> None:
        """Wait while it is the client's turn; what trickles in does not begin the wait anew."""
        is_waiting = self.cycle is None or self.cycle.response_complete or self.cycle.more_body
        if is_waiting and self._patience is None and not self.transport.is_closing():
            self._connections.waits(self)
            self._patience = self.loop.call_later(_WAIT_SECONDS, self.transport.abort)
        elif not is_waiting:
            self._connections.is_served(self)
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


def most_proxies() -> int:
    """Return how many connections Envoys may have, beside those of this process's HTTP server: one for each."""
    return most_connections() // 4


def most_connections() -> int:
    """Return how many this process can have, after letting it open as many files as the system allows at all."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS names a limit that it does not allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 1_000_000 if soft == resource.RLIM_INFINITY else soft
    # what is dropped is closed one turn of the event loop later, when as many new ones have been accepted again
    return max(64, files - 3 * ACCEPTED_AT_ONCE - _OTHER_FILES)
