"""Keeps the newest table, and notifies the streams that wait for the next one."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg
import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from api.proxies.key_opener import Opener
from api.proxies.protobuf import Messages, messages_of
from api.proxies.resolver import Names
from api.proxies.server_metrics import Observed
from db.connection.transactions import transaction
from db.proxies.traffic_reader import TrafficReader
from domain.traffic.snapshot import TrafficSnapshot
from traffic.envoy.table_resources import envoy_resources
from traffic.resources import Resources, Watermark, made_anew
from traffic.routing_table import TrafficTable, derive_table

READ_SECONDS = 0.5
_REST_SECONDS = 2.0
_RESTLESS_SECONDS = 10.0
"""The time after a change in which it reads at full speed, since more changes may follow."""
POSTGRES_ERRORS = (SQLAlchemyError, psycopg.Error)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Published:
    """The table that is served, and its place among the tables of this server.

    `is_news`: a change was announced, or it differs from the table before.
    """

    table: TrafficTable
    resources: Resources
    messages: Messages
    watermark: Watermark
    is_news: bool


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A read and its results: after the next read only the differences are made again."""

    snapshot: TrafficSnapshot
    table: TrafficTable
    resources: Resources
    messages: Messages


class Publisher:
    """Reads on notice and every half second; while Postgres is away it keeps the last table.

    At rest, when Redis announces changes and none came for a while, it still reads every other second.
    It makes one read at a time. A request during a read waits for the next one, which sees all commits before it.
    `on_table` is called after a requested read, and after one that found another table.
    """

    def __init__(
        self, engine: Engine, names: Names, opener: Opener, observed: Observed, on_table: Callable[[], None]
    ) -> None:
        self.current: Published | None = None
        self.forgetful: set[str] = set()
        """Deployments with a dropped or renewed cluster: proxies no longer report all that is under way there."""
        self.fault: str | None = "not read yet"
        self.stopping = False
        self._engine = engine
        self._names = names
        self._opener = opener
        self._on_table = on_table
        self._observed = observed
        self._reader = TrafficReader()
        self._loaded: _Loaded | None = None
        self._asked = asyncio.Event()
        self._read_at = time.monotonic()
        self._news_at = time.monotonic()
        self._is_told: Callable[[], bool] = bool
        self._begun = 0
        self._next_read: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._listeners: set[asyncio.Event] = set()

    @property
    def age(self) -> float:
        """The age of the served table in seconds."""
        return time.monotonic() - self._read_at

    def read_soon(self) -> None:
        """Begin a read at once, or as soon as the one under way has ended."""
        self._asked.set()

    @contextmanager
    def tells(self, listener: asyncio.Event) -> Iterator[None]:
        """Set this event after every read, even if nothing changed, and when the server stops."""
        self._listeners.add(listener)
        try:
            yield
        finally:
            self._listeners.discard(listener)

    async def read_after_now(self) -> None:
        """Wait until a read has succeeded that began after this call."""
        number = self._begun
        while not self.stopping:
            self.read_soon()
            if await asyncio.shield(self._next_read) > number:
                return

    @property
    def rests(self) -> bool:
        """Whether nothing has changed for a while and Redis announces changes."""
        return self._is_told() and time.monotonic() - self._news_at > _RESTLESS_SECONDS

    async def run(self, is_told: Callable[[], bool]) -> None:
        """Read until cancelled. `is_told`: whether notices of changes arrive at present."""
        self._is_told = is_told
        while not self.stopping:
            notified = self._asked.is_set()
            self._asked.clear()
            self._begun += 1
            await self._refresh(self._begun, notified=notified)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _REST_SECONDS if self.rests else READ_SECONDS)

    def stop(self) -> None:
        """End every stream at once."""
        self.stopping = True
        self.read_soon()
        self._wake()

    async def _refresh(self, number: int, *, notified: bool) -> None:
        began = time.monotonic()
        try:
            loaded = self._loaded = await asyncio.to_thread(self._load)
        except POSTGRES_ERRORS as error:
            self._note_fault(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
            await asyncio.sleep(0.1)
            return
        self._note_fault(None)
        self._read_at = began
        self._publish(loaded, notified=notified)
        waiter, self._next_read = self._next_read, asyncio.get_running_loop().create_future()
        waiter.set_result(number)

    def _load(self) -> _Loaded:
        before = self._loaded
        with transaction(self._engine) as connection:
            snapshot = self._opener.in_place(self._names.in_place(self._reader.read(connection)))
        if before is None:
            resources = envoy_resources(table := derive_table(snapshot, door=self._opener.door))
            return _Loaded(snapshot, table, resources, messages_of(resources))
        table = derive_table(snapshot, (before.snapshot, before.table), self._opener.door)
        resources = envoy_resources(table, (before.table, before.resources))
        same = resources is before.resources
        return _Loaded(snapshot, table, resources, before.messages if same else messages_of(resources, before.messages))

    def _publish(self, loaded: _Loaded, *, notified: bool) -> None:
        before, resources = self.current, loaded.resources
        same = before is not None and before.resources.version == resources.version
        number = before.watermark.number + 1 if before else 1
        mark = Watermark(number, loaded.table.seen, resources.version)
        self.current = Published(loaded.table, resources, loaded.messages, mark, is_news=notified or not same)
        if not same:
            self._note_faults(loaded.table, before)
            if before is not None:
                self.forgetful |= {name.partition("/")[0] for name in made_anew(before.resources, resources)}
                self.forgetful &= {service.name for service in loaded.table.services}
            self._observed.tables.inc()
        self._wake()
        if self.current.is_news:
            self._news_at = time.monotonic()
            self._on_table()

    def _wake(self) -> None:
        for listener in self._listeners:
            listener.set()

    def _note_fault(self, fault: str | None) -> None:
        if fault != self.fault:
            if fault:
                _log.warning("Postgres cannot be read; the last table is served on", error=fault)
            elif self.current:
                _log.info("Postgres is read again")
        self.fault = fault

    def _note_faults(self, table: TrafficTable, before: Published | None) -> None:
        for fault in set(table.faults) - set(before.table.faults if before else ()):
            _log.warning("left out of the table", fault=fault)
