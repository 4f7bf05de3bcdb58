"""The recorder: writes which table each proxy knows, and announces when all of them have let go of replicas."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import psycopg
import structlog
from sqlalchemy import Engine

from api.proxies.proxy_liveness import ProxyLiveness
from api.proxies.publisher import POSTGRES_ERRORS
from api.proxies.server_metrics import Observed
from db.certificates import note_refused
from db.connection.transactions import in_transaction
from db.proxies.acks import (
    Ack,
    DrainedRoute,
    Follows,
    SeenProxy,
    begin_publishing,
    note_acks,
    note_known_weights,
    note_proxies,
    note_publisher,
    release_drained,
    what_follows,
)
from domain.text.storable import storable
from traffic.resources import Watermark

_REFUSALS = (psycopg.DataError, psycopg.IntegrityError, UnicodeError)


@dataclass(frozen=True, slots=True)
class Written:
    """`drained`: routes that every live proxy has released. `refused`: proxies that cannot be stored, and why."""

    drained: list[DrainedRoute]
    refused: dict[str, str]


class Writer:
    """Writes as one server for proxies, under an id of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._id = uuid4().hex
        self._has_begun = False

    def write(self, proxies: Sequence[SeenProxy], acks: Sequence[Ack], *, beats: bool) -> Written:
        """Write what proxies know, then, in transactions of their own, what follows from it.

        Waiting for a deployment's lock must not keep others from writing what proxies know.
        """
        try:
            follows = in_transaction(self._engine, partial(self._note, proxies=proxies, acks=acks, beats=beats))
            refused = {}
        except _REFUSALS:
            follows, refused = Follows(weights=True, drains=True), self._note_each(proxies, acks, beats=beats)
        self._has_begun = True
        if follows.weights:
            in_transaction(self._engine, note_known_weights)
        drained = in_transaction(self._engine, release_drained) if follows.drains else []
        return Written(drained, refused)

    def note_refused(self, names: Collection[str], no_more: Collection[str], why: str) -> None:
        """Record which certificates a proxy refuses, in its words, and which it accepts now."""

        def note(connection: psycopg.Connection) -> None:
            note_refused(connection, names, storable(why))
            note_refused(connection, no_more, None)

        in_transaction(self._engine, note)

    def _note_each(self, proxies: Sequence[SeenProxy], acks: Sequence[Ack], *, beats: bool) -> dict[str, str]:
        in_transaction(self._engine, partial(self._note, proxies=(), acks=(), beats=beats))
        self._has_begun = True
        refused: dict[str, str] = {}
        for node in sorted({proxy.node_id for proxy in proxies} | {ack.node_id for ack in acks}):
            own = [proxy for proxy in proxies if proxy.node_id == node]
            its_acks = [ack for ack in acks if ack.node_id == node]
            try:
                in_transaction(self._engine, partial(self._note, proxies=own, acks=its_acks, beats=False))
            except _REFUSALS as error:
                refused[node] = str(error).partition("\n")[0]
        return refused

    def _note(
        self, connection: psycopg.Connection, *, proxies: Sequence[SeenProxy], acks: Sequence[Ack], beats: bool
    ) -> Follows:
        if not self._has_begun:
            begin_publishing(connection, self._id)
        elif beats:
            note_publisher(connection, self._id)
        note_proxies(connection, proxies)
        note_acks(connection, acks)
        return what_follows(connection)


BEAT_SECONDS = 1.0
_log = structlog.get_logger(__name__)


class Recorder:
    """Writes new acknowledgements at once, and signs of life once a second; after a fault it tries again.

    `on_release` is called in a thread when every live proxy has let go of some replicas, so that they may be stopped.
    `fault`: why the last write failed, or None. `failed_writes`: how many did.
    """

    def __init__(self, engine: Engine, observed: Observed, on_release: Callable[[], None]) -> None:
        self.presence = ProxyLiveness()
        self.fault: str | None = None
        self.failed_writes = 0
        self._writer = Writer(engine)
        self._observed = observed
        self._on_release = on_release
        self._due = asyncio.Event()
        self._unwritten: set[str] = set()
        self._registered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._known: dict[str, Watermark] = {}
        self._said: dict[str, dict[object, Watermark | None]] = {}
        self._written: dict[str, int] = {}
        self._beat_at = float("-inf")

    async def hear(self, proxy: SeenProxy) -> None:
        """Take in a sign of life. Wait, a second at most, until a new proxy is stored: only then may it get a table.

        Otherwise a replica in that table might be stopped before the proxy counts as one that must let go of it.
        """
        if not self.presence.hear(proxy) and proxy.node_id not in self._unwritten:
            return
        self._unwritten.add(proxy.node_id)
        self._due.set()
        deadline = time.monotonic() + BEAT_SECONDS
        while proxy.node_id in self._unwritten and (remaining := deadline - time.monotonic()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._registered), remaining)

    def write_soon(self) -> None:
        """Write soon: a proxy may know more, or a table may show more drains."""
        self._due.set()

    @contextmanager
    def hears_of(self, node: str, stream: object) -> Iterator[None]:
        """Take in a stream.

        A proxy knows only what all its streams do: restarted hot, an Envoy is two processes for a while.
        """
        marks = self._said.setdefault(node, {})
        marks[stream] = None
        try:
            yield
        finally:
            del marks[stream]
            if marks:
                self._note_known(node)
                self._due.set()
            else:
                del self._said[node]

    def knows(self, node: str, watermark: Watermark, *, is_news: bool, by: object = None) -> None:
        """A proxy acknowledges this table, on the stream `by` if it has one.

        It is written at once when it `is_news`, else with the next sign of life.
        """
        if node in self._said:
            self._said[node][by] = watermark
            self._note_known(node)
        else:
            self._known[node] = watermark
        if is_news:
            self._due.set()

    def _note_known(self, node: str) -> None:
        marks = [mark for mark in self._said[node].values() if mark]
        if len(marks) == len(self._said[node]):
            self._known[node] = min(marks, key=lambda mark: mark.number)

    def watermark(self, node: str) -> Watermark | None:
        """The newest table that this proxy knows."""
        return self._known.get(node)

    async def note_refused(self, names: Collection[str], no_more: Collection[str], why: str) -> None:
        """A proxy refuses these certificates, and accepts those `no_more` refused. It repeats that, as it must."""
        try:
            await asyncio.to_thread(self._writer.note_refused, names, no_more, why)
        except POSTGRES_ERRORS as error:
            _log.warning("refused certificates not noted", error=str(error).partition("\n")[0])

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), max(0.0, self._beat_at + BEAT_SECONDS - time.monotonic()))
            self._due.clear()
            self._forget(self.presence.silent())
            try:
                await self._record()
            except POSTGRES_ERRORS as error:
                self._note_failure(str(error).partition("\n")[0])
                await asyncio.sleep(0.2)
                self._due.set()

    async def _record(self) -> None:
        now = time.monotonic()
        beats = now - self._beat_at >= BEAT_SECONDS or bool(self._unwritten)
        advanced = self._advanced()
        if not beats and not advanced:
            return
        # since signs of life were last written
        alive = self.presence.heard_since(min(self._beat_at, now - BEAT_SECONDS)) if beats else []
        acks = [Ack(node, mark.version, mark.seen) for node, mark in advanced.items()]
        result = await asyncio.to_thread(self._writer.write, alive, acks, beats=beats)
        self.fault = None
        self._written |= {node: mark.number for node, mark in advanced.items()}
        if beats:
            self._beat_at = now
            self._note_registered({proxy.node_id for proxy in alive})
        for node, why in result.refused.items():
            self._note_failure(f"{node}: {why}")
        self._forget(result.refused)
        if result.drained:
            await self._announce(result.drained)

    def _advanced(self) -> dict[str, Watermark]:
        """The newest table of each proxy that knows a newer one than was written."""
        return {
            node: mark
            for node in self.presence.nodes
            if (mark := self.watermark(node)) and mark.number > self._written.get(node, 0)
        }

    async def _announce(self, drained: list[DrainedRoute]) -> None:
        for route in drained:
            self._observed.drain_ack.observe(route.seconds)
        await asyncio.to_thread(self._on_release)

    def _note_registered(self, nodes: set[str]) -> None:
        if self._unwritten & nodes:
            self._unwritten -= nodes
            waiter, self._registered = self._registered, asyncio.get_running_loop().create_future()
            waiter.set_result(None)

    def _note_failure(self, why: str) -> None:
        self.fault = why
        self.failed_writes += 1
        self._observed.failed_writes.inc()
        _log.warning("acknowledgements not written; tried again", error=why)

    def _forget(self, nodes: Iterable[str]) -> None:
        gone = list(nodes)
        self.presence.forget(gone)
        for node in gone:
            self._known.pop(node, None)
            self._written.pop(node, None)
            self._unwritten.discard(node)
