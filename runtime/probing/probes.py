"""Probes of replicas: one question each, on a connection of its own; no probe waits for another."""

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic
from uuid import UUID

import h11
from h2.exceptions import H2Error

from domain.revisions.health_check import HealthCheck
from domain.traffic.tls import ReplicaTls
from runtime.probing.http1 import Heard, Http1Question, ProbeAnswer, Question, context_of, host_and_port, why_no_tls
from runtime.probing.http2 import GrpcQuestion, Http2Question

_MOST_NAME_LOOKUPS = 64
_BURST = 25
_BURST_SECONDS = 0.02
_LATE_SECONDS = 1.0
_QUESTIONS: Mapping[str, Callable[[str, HealthCheck], Question[ProbeAnswer]]] = {
    "http1": Http1Question,
    "http2": Http2Question,
    "grpc": GrpcQuestion,
}


@dataclass(frozen=True, slots=True)
class ProbeTarget:
    """Ask the replica of `route_id` at `address` (host:port) as `check` says. `tls`: None: in clear text."""

    route_id: UUID
    address: str
    check: HealthCheck
    tls: ReplicaTls | None = None


class Prober:
    """Sends probes from an event loop in a thread of its own. `submit` and `answers` wait for no replica.

    Each probe has its own connection: it must see whether new connections are accepted, and an idle one would hold up
    a replica that waits for its connections to close when it stops. At most 1,250 probes a second are sent, so that
    the answers of a burst are read in time; a route never has two in flight. No probe fails because this process stood
    still for a second: what is seen so late says nothing of a replica, which is asked again in its next turn.
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
        answer, over = None, self._loop.time() + target.check.timeout_seconds
        try:
            answer = await probe(target.address, target.check, target.tls)
            if not answer.ok and self._loop.time() > over + _LATE_SECONDS:
                answer = None
        finally:
            with self._changed:
                self._in_flight.discard(target.route_id)
                self._awaited.discard(target.route_id)
                if answer:
                    self._answers[target.route_id] = answer
                if not self._awaited:
                    self._changed.notify_all()


async def probe(address: str, check: HealthCheck, tls: ReplicaTls | None = None) -> ProbeAnswer:
    """Ask once, as `check` says; the answer must be there within `check.timeout_seconds`. Never raises."""
    try:
        host, port = host_and_port(address)
        question = _QUESTIONS[check.protocol](address, check)
        secure = context_of(tls, check.protocol) if tls else None
        async with asyncio.timeout(check.timeout_seconds):
            return await answer_over(host, port, question, secure, tls.name if tls else None)
    except OSError as error:
        if isinstance(error, TimeoutError) and error.errno is None:
            detail = f"{check.request_line}: no answer within {check.timeout_seconds:g} s"
            return ProbeAnswer(ok=False, detail=detail, is_late=True)
        why = why_no_tls(tls, error) if tls else ""
        return ProbeAnswer(ok=False, detail=f"{address} {why or why_not_connected(error)}")
    except (h11.LocalProtocolError, H2Error, ValueError):
        return ProbeAnswer(ok=False, detail=f"{check.request_line} at {address!r} is no valid request")


class _Exchange(asyncio.Protocol, Generic[Heard]):
    """A question on its way: its bytes are sent, and received bytes are passed to it until it has its answer."""

    def __init__(self, question: Question[Heard]) -> None:
        self.answer: asyncio.Future[Heard] = asyncio.get_running_loop().create_future()
        self._question = question
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)  # noqa: S101  (narrows the type)
        self._transport = transport
        transport.write(self._question.to_send())

    def data_received(self, data: bytes) -> None:
        if self.answer.done():
            return
        answer = self._question.hear(data)
        if answer:
            self.answer.set_result(answer)
        elif self._transport is not None:
            self._transport.write(self._question.to_send())

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's name)
        if not self.answer.done():
            self.answer.set_result(self._question.unanswered())


async def answer_over(
    host: str, port: int, question: Question[Heard], secure: ssl.SSLContext | None, name: str | None
) -> Heard:
    """Ask on a connection of its own, by TLS to `name` with a context. Raises OSError where there is no connection."""
    loop = asyncio.get_running_loop()
    exchange = _Exchange(question)
    transport, _ = await loop.create_connection(lambda: exchange, host, port, ssl=secure, server_hostname=name)
    try:
        return await exchange.answer
    finally:
        transport.abort()  # close() would first wait until all is sent, for ever if nobody reads it


def why_not_connected(error: OSError) -> str:
    """The fault in words: a refusal is the replica's, anything else (no file descriptor left) may be the prober's."""
    match error:
        case ConnectionRefusedError():
            return "refused the connection"
        case socket.gaierror() | OSError(errno=None):
            return f"could not be reached: {error.strerror or error}"
    return f"could not be reached: {os.strerror(error.errno or 0)}"
