"""The recorder: writes which proxies are there, what each knows, and which drains all of them know."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, KeysView
from contextlib import contextmanager, suppress
from uuid import uuid4

import structlog
from psycopg import Connection
from sqlalchemy import Engine

from api.proxies.observed import Observed
from api.proxies.publisher import POSTGRES_ERRORS
from db.engine import in_transaction
from db.proxies.acks import (
    Ack,
    DrainedRoute,
    SeenProxy,
    begin_publishing,
    note_acks,
    note_proxies,
    note_publisher,
    release_drained,
)
from traffic.acks import Acks, Watermark
from traffic.resources import Subscription

BEAT_SECONDS = 1.0
_FORGET_SECONDS = 120.0
_log = structlog.get_logger(__name__)


class Recorder:
    """Writes what proxies newly know at once, and their signs of life once a second; after a fault it tries again.

    `on_release` is called in a thread when every live proxy has let go of some replicas, so that they may be stopped.
    """

    def __init__(self, engine: Engine, acks: Acks, observed: Observed, on_release: Callable[[], None]) -> None:
        self._polls: Counter[str] = Counter()
        self._engine = engine
        self._acks = acks
        self._observed = observed
        self._on_release = on_release
        self._id = uuid4().hex
        self._begun = False
        self._due = asyncio.Event()
        self._proxies: dict[str, SeenProxy] = {}
        self._heard: dict[str, float] = {}
        self._unwritten: set[str] = set()
        self._registered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._known: dict[str, Watermark] = {}
        self._written: dict[str, int] = {}
        self._beat_at = float("-inf")

    async def hear(self, proxy: SeenProxy) -> None:
        """A proxy polls. Wait, a second at most, until a new one is written down: only then may it get a table.

        Otherwise a replica in that table might be stopped before the proxy counts as one that must let go of it.
        """
        self._heard[proxy.node_id] = time.monotonic()
        if self._proxies.get(proxy.node_id) == proxy and proxy.node_id not in self._unwritten:
            return
        self._proxies[proxy.node_id] = proxy
        self._unwritten.add(proxy.node_id)
        self._due.set()
        deadline = time.monotonic() + BEAT_SECONDS
        while proxy.node_id in self._unwritten and (left := deadline - time.monotonic()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._registered), left)

    @contextmanager
    def open_poll(self, node: str) -> Iterator[None]:
        """The proxy is there as long as this is open."""
        self._polls[node] += 1
        try:
            yield
        finally:
            self._polls[node] -= 1

    def write_soon(self) -> None:
        """There may be something to write: a proxy may know more, or a table may show more drains."""
        self._due.set()

    def acknowledge(self, node: str, subscription: Subscription, version: str) -> None:
        """A proxy holds this version of a subscription."""
        self._acks.polled(node, subscription, version)
        self._due.set()

    def knows(self, node: str, watermark: Watermark) -> None:
        """A proxy that takes over whole tables knows this one."""
        self._known[node] = watermark
        self._due.set()

    def watermark(self, node: str) -> Watermark | None:
        """The newest table that this proxy knows."""
        return self._known.get(node) or self._acks.watermark(node)

    @property
    def nodes(self) -> KeysView[str]:
        """The ids of the proxies that polled this server lately."""
        return self._proxies.keys()

    @property
    def live(self) -> list[SeenProxy]:
        """Proxies with an open poll, and those that polled a moment ago."""
        now = time.monotonic()
        return [
            proxy
            for proxy in self._proxies.values()
            if self._polls[proxy.node_id] or now - self._heard[proxy.node_id] < proxy.silence_seconds
        ]

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), max(0.0, self._beat_at + BEAT_SECONDS - time.monotonic()))
            self._due.clear()
            try:
                await self._record()
            except POSTGRES_ERRORS as error:
                _log.warning("acknowledgements not written; tried again", error=str(error).partition("\n")[0])
                await asyncio.sleep(0.2)
                self._due.set()

    async def _record(self) -> None:
        now = time.monotonic()
        beats = now - self._beat_at >= BEAT_SECONDS or bool(self._unwritten)
        advanced = self._advanced()
        if not beats and not advanced:
            return
        alive = [proxy for proxy in self._proxies.values() if self._is_polling(proxy.node_id, now)] if beats else []
        acks = [Ack(node, mark.version, mark.seen) for node, mark in advanced.items()]
        released = await asyncio.to_thread(self._write, alive, acks, beats=beats)
        self._written |= {node: mark.number for node, mark in advanced.items()}
        if beats:
            self._beat_at = now
            self._forget_silent(now)
            self._note_registered({proxy.node_id for proxy in alive})
        if released:
            await self._announce(released)

    def _advanced(self) -> dict[str, Watermark]:
        """The newest table of each proxy that knows a newer one than was written."""
        return {
            node: mark
            for node in self._proxies
            if (mark := self.watermark(node)) and mark.number > self._written.get(node, 0)
        }

    async def _announce(self, released: list[DrainedRoute]) -> None:
        for route in released:
            self._observed.drain_ack.observe(route.seconds)
        await asyncio.to_thread(self._on_release)

    def _write(self, alive: list[SeenProxy], acks: list[Ack], *, beats: bool) -> list[DrainedRoute]:
        """Two transactions: who waits for a deployment's lock must not keep others from writing what proxies know."""

        def note(connection: Connection) -> None:
            if not self._begun:
                begin_publishing(connection, self._id)
            elif beats:
                note_publisher(connection, self._id)
            note_proxies(connection, alive)
            note_acks(connection, acks)

        in_transaction(self._engine, note)
        self._begun = True
        return in_transaction(self._engine, release_drained)

    def _is_polling(self, node: str, now: float) -> bool:
        """It has an open poll, or polled since signs of life were last written."""
        return bool(self._polls[node]) or self._heard[node] >= self._beat_at or now - self._heard[node] < BEAT_SECONDS

    def _note_registered(self, nodes: set[str]) -> None:
        if self._unwritten & nodes:
            self._unwritten -= nodes
            done, self._registered = self._registered, asyncio.get_running_loop().create_future()
            done.set_result(None)

    def _forget_silent(self, now: float) -> None:
        gone = [node for node, at in self._heard.items() if not self._polls[node] and now - at > _FORGET_SECONDS]
        for node in gone:
            del self._heard[node], self._proxies[node], self._polls[node]
            self._known.pop(node, None)
            self._written.pop(node, None)
        self._acks.forget(gone)
