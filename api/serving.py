"""Runs and ends both servers: connections and bodies are bounded, and a server belongs to one installation.

A connection waits for its client, 10 s at most, until a whole request is here; then it is served, however long that
takes. When there are too many, the one goes that has waited longest: a proxy, whose requests come at once, does not.
"""

import asyncio
import os
import re
import resource
import socket
import threading
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from domain.commands.registry import MOST_COMMAND_BYTES
from runtime.machine.free_ports import handed_socket
from tasks.worker.garbage import collect_seldom
from tasks.worker.installation import begin

TOO_LARGE = f"The body of a request may have {MOST_COMMAND_BYTES:,} bytes, as many as a command."


class BoundedBodies:
    """ASGI middleware: the app gets a body in one piece, or no request at all."""

    def __init__(self, app: ASGIApp, refusal: Response | None = None) -> None:
        self._app = app
        self._refusal = refusal or JSONResponse({"detail": TOO_LARGE}, 413, headers={"connection": "close"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = None if _announced(scope) > MOST_COMMAND_BYTES else await _body(receive)
        if body is None:
            await self._refusal(scope, receive, send)
            return
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def first_the_body() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, first_the_body, send)


def _announced(scope: Scope) -> int:
    """The content-length, which the server has checked to be a number; 0 without one."""
    return next((int(value) for name, value in scope["headers"] if name == b"content-length"), 0)


async def _body(receive: Receive) -> bytes | None:
    """The whole body; None when it is too large. A client that hung up leaves a part, which nobody waits for."""
    body = bytearray()
    while len(body) <= MOST_COMMAND_BYTES:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body", False):
            return bytes(body)
    return None


ACCEPTED_AT_ONCE = 128
"""The listen backlog: the most connections taken in one go, before any of them can be refused."""
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

    def add(self, connection: "BoundedProtocol") -> None:
        """Add a connection, which waits for its first request."""
        self._open.add(connection)
        self.waits(connection)
        while len(self._open) > self._most or len(self._waiting) > self._most // 2:
            self._drop_oldest()

    def waits(self, connection: "BoundedProtocol") -> None:
        """The connection waits for its client from now on."""
        self._waiting[connection] = None

    def is_served(self, connection: "BoundedProtocol") -> None:
        self._waiting.pop(connection, None)

    def remove(self, connection: "BoundedProtocol") -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def _drop_oldest(self) -> None:
        oldest = next(iter(self._waiting))  # the new one at least
        self.remove(oldest)
        oldest.transport.abort()


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol with limits: uvicorn itself waits for a request for ever."""

    def __init__(self, *, connections: Connections, **uvicorns: Any) -> None:  # noqa: ANN401
        super().__init__(**uvicorns)
        self._connections = connections
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._connections.add(self)
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
        super().connection_lost(exc)
        self._connections.remove(self)
        self._stop_waiting()

    def _look(self) -> None:
        """Wait while it is the client's turn; trickling bytes do not restart the wait."""
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
    """The most connections of Envoys, next to those of this process's HTTP server: one for each."""
    return most_connections() // 4


def most_connections() -> int:
    """The most connections of this process, after raising its limit of open files as far as the system allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # macOS names a limit that it does not allow
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = 1_000_000 if soft == resource.RLIM_INFINITY else soft
    # what is dropped is closed one turn of the event loop later, when as many new ones have been accepted again
    return max(64, files - 3 * ACCEPTED_AT_ONCE - _OTHER_FILES)


_COMPARE_SECONDS = 3.0
_CANCEL_AGAIN_SECONDS = 0.1
_TICK_SECONDS = 1.0
"""The header `Date` counts seconds."""


def config(app: Starlette, host: str, port: int, most: int, *, is_forwarded: bool) -> uvicorn.Config:
    """The configuration of one server, with `most` connections.

    `is_forwarded`: a proxy of this machine may say for whom it asks.
    """
    protocol: Any = partial(BoundedProtocol, connections=Connections(most))
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=protocol,
        backlog=ACCEPTED_AT_ONCE,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        log_config=None,
        access_log=False,
        server_header=False,
        headers=[("x-content-type-options", "nosniff")],
        proxy_headers=is_forwarded,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=10,
    )


class QuietServer(uvicorn.Server):
    """Checks once a second whether it should end, and at once on a signal: uvicorn's own checks ten times a second.

    It serves at the socket that is kept for it, or else listens by itself.
    """

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        handed = handed_socket(os.environ)
        super().run([handed] if handed else sockets)

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._asked = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def main_loop(self) -> None:
        """Go on until it should end."""
        collect_seldom()
        self._loop = asyncio.get_running_loop()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _TICK_SECONDS)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal, which may come in the middle of a step of the event loop."""
        super().handle_exit(sig, frame)
        self.look_now()

    def look_now(self) -> None:
        """Check now whether it should end."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._asked.set)


async def end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel the background work, until all of it has ended.

    Again and again: a wait that ends in the moment of its cancelling may swallow that (python/cpython#86296).
    """
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_CANCEL_AGAIN_SECONDS)


def compare_installation() -> None:
    """End this process when Redis is of another installation than the database, also when they answer later."""
    comparing = threading.Thread(target=begin, args=(None,), name="compare installation", daemon=True)
    comparing.start()
    comparing.join(_COMPARE_SECONDS)
