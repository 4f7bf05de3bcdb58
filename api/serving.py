"""Runs and ends both servers: bounded connections, work beside the requests, one installation with Redis."""

import asyncio
import os
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette

from api.connections import ACCEPTED_AT_ONCE, LONGEST_HEAD, BoundedProtocol, Connections
from runtime.machine.ports import handed_socket
from tasks.worker.garbage import collect_seldom
from tasks.worker.installation import begin

_COMPARE_SECONDS = 3.0
_CANCEL_AGAIN_SECONDS = 0.1
_TICK_SECONDS = 1.0
"""The header `Date` counts seconds."""


def config(app: Starlette, host: str, port: int, most: int, *, is_forwarded: bool) -> uvicorn.Config:
    """For one server, with `most` connections.

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
    """Looks once a second whether it should end, and at once when it is asked to: uvicorn's own looks ten times.

    It serves at the socket that is kept for it, or else listens by itself.
    """

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until it is asked to end."""
        kept = handed_socket(os.environ)
        super().run([kept] if kept else sockets)

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
        """Something says that it should end."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._asked.set)


async def end(tasks: Iterable[asyncio.Task[None]]) -> None:
    """Cancel what goes on beside the requests, until all of it has ended.

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
