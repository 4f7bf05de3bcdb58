"""The publisher: keeps the newest table at hand and wakes whoever waits for a part of it to change."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg
import structlog
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from api.proxies.names import Names
from api.proxies.observed import Observed
from db.engine import transaction
from db.proxies.table import read_traffic
from traffic.acks import Acks, Watermark
from traffic.envoy import envoy_resources
from traffic.resources import Resource, Resources, Subscription
from traffic.table import TrafficTable, derive_table

READ_SECONDS = 0.5
POSTGRES_ERRORS = (SQLAlchemyError, psycopg.Error)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Published:
    """The table that is served, and its place among the tables of this server."""

    table: TrafficTable
    resources: Resources
    watermark: Watermark


class Publisher:
    """Reads when told to and every half second; while Postgres is away it keeps the last table.

    It makes one read at a time. Who asks during a read gets the next one, which sees all that was committed before.
    `on_table` is called after a read that was asked for, and after one that found another table.
    """

    def __init__(
        self, engine: Engine, names: Names, acks: Acks, observed: Observed, on_table: Callable[[], None]
    ) -> None:
        self.current: Published | None = None
        self.fault: str | None = "not read yet"
        self.stopping = False
        self._engine = engine
        self._names = names
        self._acks = acks
        self._on_table = on_table
        self._observed = observed
        self._asked = asyncio.Event()
        self._read_at = time.monotonic()
        self._begun = 0
        self._next_read: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting: dict[Subscription, set[asyncio.Future[None]]] = {}

    @property
    def age(self) -> float:
        """Seconds since what is served was read."""
        return time.monotonic() - self._read_at

    def read_soon(self) -> None:
        """Begin a read at once, or as soon as the one under way has ended."""
        self._asked.set()

    def resource(self, subscription: Subscription) -> Resource | None:
        """The present content, None when the table has no such thing."""
        return self.current.resources.by_subscription.get(subscription) if self.current else None

    @contextmanager
    def change_of(self, subscription: Subscription) -> Iterator[asyncio.Future[None]]:
        """A future that is done once this content is another one, or the server stops."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(subscription, set())
        waiting.add(future)
        if self.stopping:
            future.set_result(None)
        try:
            yield future
        finally:
            waiting.discard(future)
            if not waiting and self._waiting.get(subscription) is waiting:
                del self._waiting[subscription]

    async def read_after_now(self) -> None:
        """Wait until a read has succeeded that began after this call."""
        begun = self._begun
        while not self.stopping:
            self.read_soon()
            if await asyncio.shield(self._next_read) > begun:
                return

    async def run(self) -> None:
        """Read until cancelled."""
        while not self.stopping:
            notified = self._asked.is_set()
            self._asked.clear()
            self._begun += 1
            await self._read(self._begun, notified=notified)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), READ_SECONDS)

    def stop(self) -> None:
        """Let every poll go, at once."""
        self.stopping = True
        self.read_soon()
        self._wake(list(self._waiting))

    async def _read(self, number: int, *, notified: bool) -> None:
        began = time.monotonic()
        try:
            table, resources = await asyncio.to_thread(self._load)
        except POSTGRES_ERRORS as error:
            self._note_fault(f"{type(error).__name__}: {str(error).partition(chr(10))[0]}")
            await asyncio.sleep(0.1)
            return
        self._note_fault(None)
        self._read_at = began
        self._publish(table, resources, notified=notified)
        done, self._next_read = self._next_read, asyncio.get_running_loop().create_future()
        done.set_result(number)

    def _load(self) -> tuple[TrafficTable, Resources]:
        before = self.current
        with transaction(self._engine) as connection:
            snapshot = read_traffic(connection)
        table = derive_table(self._names.in_place(snapshot))
        return table, envoy_resources(table, (before.table, before.resources) if before else None)

    def _publish(self, table: TrafficTable, resources: Resources, *, notified: bool) -> None:
        before = self.current
        self.current = Published(table, resources, self._acks.publish(resources, table.seen))
        same = before is not None and before.resources.version == resources.version
        if not same:
            self._note_faults(table, before)
            self._observed.tables.inc()
            self._wake(_changed(before.resources.by_subscription if before else {}, resources.by_subscription))
        if notified or not same:
            self._on_table()

    def _wake(self, subscriptions: list[Subscription]) -> None:
        for subscription in subscriptions:
            for future in self._waiting.pop(subscription, set()):
                if not future.done():
                    future.set_result(None)

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


def _changed(before: Mapping[Subscription, Resource], after: Mapping[Subscription, Resource]) -> list[Subscription]:
    return [key for key, new in after.items() if key not in before or before[key].version != new.version]
