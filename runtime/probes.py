"""HTTP probes of replicas: one GET each, on a connection of its own; no probe waits for another."""

import asyncio
import os
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urlsplit
from uuid import UUID

import h11

from domain.replicas.revision import HealthCheck

_SUCCESS = range(200, 400)
_MOST_HEADER_BYTES = 100 * 1024
_MOST_NAME_LOOKUPS = 64
_BURST = 25
_BURST_SECONDS = 0.02
_KEPT_IN_URLS = "/?[]@!$&'()*+,;=:%~"


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """Ask the replica of `route_id` at `address` (host:port) as `check` says."""

    route_id: UUID
    address: str
    check: HealthCheck


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """Whether it was a success, and what was seen in a few words ("GET /health answered 503")."""

    ok: bool
    detail: str


class Prober:
    """Sends probes from an event loop in a thread of its own. `submit` and `answers` wait for no replica.

    Each probe has its own connection: it must see whether new connections are accepted, and an idle one would hold up
    a replica that waits for its connections to close when it stops. At most 1,250 probes a second are sent, so that
    the answers of a burst are read in time; a route never has two in flight.
    """

    def __init__(self, name: str = "probes") -> None:
        self._changed = threading.Condition()
        self._in_flight: set[UUID] = set()
        self._awaited: set[UUID] = set()
        self._answers: dict[UUID, ProbeAnswer] = {}
        self._queue: asyncio.Queue[Sequence[ProbeTarget] | None] = asyncio.Queue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give up the probes in flight, and end the thread."""
        self._loop.call_soon_threadsafe(self._queue.put_nowait, None)
        self._thread.join()

    def submit(self, targets: Sequence[ProbeTarget]) -> None:
        """Send these probes, except to routes whose last probe is still in flight."""
        with self._changed:
            fresh = {target.route_id: target for target in targets if target.route_id not in self._in_flight}
            self._in_flight |= fresh.keys()
            self._awaited = set(fresh)
        if fresh:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, list(fresh.values()))

    def answers(self, wait: float) -> dict[UUID, ProbeAnswer]:
        """The newest answer of each route since the last call, by route id.

        Waits until everything that was submitted last is answered, for `wait` seconds at most.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._awaited, wait)
            arrived, self._answers = self._answers, {}
        return arrived

    @property
    def is_busy(self) -> bool:
        """Whether a probe is in flight."""
        return bool(self._in_flight)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        # asyncio's own few threads would all be held by a few names that nobody resolves
        self._loop.set_default_executor(ThreadPoolExecutor(_MOST_NAME_LOOKUPS, "probe name lookup"))
        running: set[asyncio.Task[None]] = set()
        while (targets := await self._queue.get()) is not None:
            for first in range(0, len(targets), _BURST):
                for target in targets[first : first + _BURST]:
                    task = asyncio.create_task(self._probe(target))
                    running.add(task)
                    task.add_done_callback(running.discard)
                await asyncio.sleep(_BURST_SECONDS)

    async def _probe(self, target: ProbeTarget) -> None:
        answer = None
        try:
            answer = await probe(target.address, target.check)
        finally:
            with self._changed:
                self._in_flight.discard(target.route_id)
                self._awaited.discard(target.route_id)
                if answer:
                    self._answers[target.route_id] = answer
                if not self._awaited:
                    self._changed.notify_all()


async def probe(address: str, check: HealthCheck) -> ProbeAnswer:
    """GET `check.path` once; the status line and headers must arrive within `check.timeout_seconds`. Never raises."""
    what = f"GET {check.path}"
    try:
        host, port, request = _request(address, check.path)
        async with asyncio.timeout(check.timeout_seconds):
            status = await _status(host, port, request)
    except OSError as error:
        if isinstance(error, TimeoutError) and error.errno is None:
            return ProbeAnswer(ok=False, detail=f"{what}: no answer within {check.timeout_seconds:g} s")
        return ProbeAnswer(ok=False, detail=f"{address} {_why_not_connected(error)}")
    except (h11.LocalProtocolError, ValueError):
        return ProbeAnswer(ok=False, detail=f"{what} at {address!r} is no valid request")
    if status is None:
        return ProbeAnswer(ok=False, detail=f"{what}: the connection broke, or the answer is not HTTP")
    return ProbeAnswer(status in _SUCCESS, f"{what} answered {status}")


class _Exchange(asyncio.Protocol):
    """One request, and the head of its answer: the status, or None when there was none. The body is not read."""

    def __init__(self, request: h11.Request) -> None:
        self.status: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_HEADER_BYTES)
        self._head = self._http.send(request) or b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)  # noqa: S101  (narrows the type)
        transport.write(self._head)

    def data_received(self, data: bytes) -> None:
        if self.status.done():
            return
        try:
            self._http.receive_data(data)
            event = self._http.next_event()
            while isinstance(event, h11.InformationalResponse):
                event = self._http.next_event()
        except h11.RemoteProtocolError:
            self.status.set_result(None)
            return
        if isinstance(event, h11.Response):
            self.status.set_result(event.status_code)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's name)
        if not self.status.done():
            self.status.set_result(None)


async def _status(host: str, port: int, request: h11.Request) -> int | None:
    exchange = _Exchange(request)
    transport, _ = await asyncio.get_running_loop().create_connection(lambda: exchange, host, port)
    try:
        return await exchange.status
    finally:
        transport.abort()  # close() would first wait until all is sent, for ever if nobody reads it


@lru_cache(4096)
def _request(address: str, path: str) -> tuple[str, int, h11.Request]:
    """Host, port and request of a probe. Raises ValueError or h11.LocalProtocolError for what is no address or path."""
    parts = urlsplit(f"//{address}")
    if not parts.hostname or parts.netloc != address:
        raise ValueError(f"{address!r} is not host:port")
    headers = [("Host", address), ("User-Agent", "rollway-probe"), ("Accept", "*/*"), ("Connection", "close")]
    target = quote(path.partition("#")[0], safe=_KEPT_IN_URLS)
    return parts.hostname, parts.port or 80, h11.Request(method="GET", target=target, headers=headers)


def _why_not_connected(error: OSError) -> str:
    """The fault in words: a refusal is the replica's, anything else (no file descriptor left) may be the prober's."""
    match error:
        case ConnectionRefusedError():
            return "refused the connection"
        case socket.gaierror() | OSError(errno=None):
            return f"could not be reached: {error.strerror or error}"
    return f"could not be reached: {os.strerror(error.errno or 0)}"
