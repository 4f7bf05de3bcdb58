"""Reads what changes, once for all who listen: when Redis says so, and twice a second in any case.

Where nobody listens nothing is read.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from uuid import uuid4

import structlog
from psycopg import Connection
from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool

from api.people.streams.catch_up import Readings
from api.people.streams.subscribers import (
    Document,
    Event,
    Listener,
    Telling,
    cursor_of,
    give,
    instant_of,
    joined,
    text_of,
)
from db.access_tokens import still_valid
from db.connection.transactions import in_transaction
from db.views.change_feed import Changes, changes_since
from db.views.documents import begin_reading
from domain.installation.tokens import Token

_READ_SECONDS = 0.5
_PAUSE_SECONDS = 0.1
"""Between two reads, however much is said: what came meanwhile is sent together."""
_VALID_SECONDS = 5.0
_KEPT = 2_000
_REST_SECONDS = 10.0
"""Reading goes on for so long after the last listener has left: most come back at once."""
_BEGINS_SECONDS = 5.0
_log = structlog.get_logger(__name__)


class ChangeReader:
    """Reads in a thread, and tells its listeners. `fault`: why it cannot read, or None."""

    def __init__(self, engine: Engine) -> None:
        self.fault: str | None = "not read yet"
        self.listeners: set[Listener] = set()
        self._engine = engine
        self._asked = asyncio.Event()
        self._boot = uuid4().hex[:8]
        self._kept: deque[Event] = deque(maxlen=_KEPT)
        self._number = 0
        self._last: Changes | None = None
        self._telling = Telling()
        self._left_at = monotonic()
        self._is_heard, self._is_current = asyncio.Event(), asyncio.Event()
        self._readings = Readings(engine)

    def read_soon(self) -> None:
        """Read as soon as the pause after the last read is over."""
        self._asked.set()

    async def run(self) -> None:
        """Until cancelled."""
        checked = monotonic()
        while True:
            await self._rest()
            await self._try(self._read)
            self._readings.forget_old()
            if monotonic() - checked > _VALID_SECONDS:
                checked = monotonic()
                await self._try(self._end_invalid)
            await asyncio.sleep(_PAUSE_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._asked.wait(), _READ_SECONDS)
            self._asked.clear()

    def end(self) -> None:
        """End every stream, since this process ends."""
        for listener in tuple(self.listeners):
            self._drop(listener)

    def listen(self, token: Token, deployment: str | None, session: bytes | None = None) -> Listener:
        """From now on; `leave` ends it. `session`: the hash of the one that it is heard in, if it is in one."""
        listener = Listener(token, deployment, self._number, session)
        self.listeners.add(listener)
        self._is_heard.set()
        return listener

    def leave(self, listener: Listener) -> None:
        """The listener is gone."""
        self.listeners.discard(listener)
        self._left_at = monotonic()

    async def begins(self) -> None:
        """Wait until a listener that came while nothing was read misses nothing any more."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_current.wait(), _BEGINS_SECONDS)

    @property
    def cursor(self) -> str:
        """The id of the event that was told last: with it a listener goes on where it was."""
        at = self._last.at if self._last else datetime.now(UTC) - timedelta(days=1)
        return cursor_of(self._boot, self._number, at)

    async def missed(self, listener: Listener, last_event_id: str) -> bytes:
        """Return what has happened since that event; all as it is when this process did not tell it, or long ago."""
        boot, _, rest = last_event_id.partition("-")
        number = rest.partition("-")[0]
        if boot == self._boot and number.isdigit() and self._first <= int(number) + 1:
            return self._told(listener, int(number))
        names = None if listener.names is None else tuple(listener.names)
        found = await self._readings.of(names, instant_of(last_event_id), self._number, self.cursor)
        return found.told + self._told(listener, found.number)

    def _told(self, listener: Listener, after: int) -> bytes:
        """Return what was told after that event, and before the listener came."""
        return joined(
            event.text
            for event in self._kept
            if after < event.number <= listener.number and listener.takes(event.deployment)
        )

    @property
    def _first(self) -> int:
        return self._kept[0].number if self._kept else self._number + 1

    async def _rest(self) -> None:
        """Where nobody listens, wait until somebody does. What was known then is old: it begins as another process."""
        if self.listeners or monotonic() - self._left_at < _REST_SECONDS:
            return
        self._is_current.clear()
        self._is_heard.clear()
        await self._is_heard.wait()
        self._boot, self._last = uuid4().hex[:8], None
        self._kept.clear()

    async def _try(self, work: Callable[[], Awaitable[None]]) -> None:
        """Whatever is in trouble may be over soon: who listens must hear of what comes then."""
        try:
            await work()
        except Exception as error:  # noqa: BLE001  (one that is let through would end every stream's news for good)
            said = str(error).partition("\n")[0]
            if self.fault is None:
                _log.warning("changes cannot be read", error=said)
            self.fault = f"{type(error).__name__}: {said}"

    async def _read(self) -> None:
        found, documents = await run_in_threadpool(self._look)
        self.fault, self._last = None, found
        self._tell(documents)
        self._is_current.set()

    def _look(self) -> tuple[Changes, list[Document]]:
        found = in_transaction(self._engine, self._changes)
        return found, list(self._telling.new(found))

    def _changes(self, connection: Connection) -> Changes:
        begin_reading(connection)
        known = self._last.states if self._last else {}
        return changes_since(connection, known, self._last.at if self._last else None)

    def _tell(self, documents: Sequence[Document]) -> None:
        events = []
        for kind, deployment, document in documents:
            self._number += 1
            events.append(Event(self._number, deployment, text_of(self.cursor, kind, document)))
        self._kept.extend(events)
        for listener in give(tuple(self.listeners), events):
            self._drop(listener)

    def _drop(self, listener: Listener) -> None:
        self.listeners.discard(listener)
        listener.end()

    async def _end_invalid(self) -> None:
        names = sorted({listener.token.name for listener in self.listeners})
        sessions = sorted({listener.session for listener in self.listeners if listener.session})
        if not names:
            return
        look = partial(still_valid, names=names, sessions=sessions)
        valid = await run_in_threadpool(in_transaction, self._engine, look)
        for listener in tuple(self.listeners):
            if not listener.holds <= valid:
                self._drop(listener)
