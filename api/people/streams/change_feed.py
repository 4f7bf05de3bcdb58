"""Reads what changes once for all subscribers: when Redis announces a change, and twice a second in any case.

Without subscribers nothing is read. A subscriber that reconnects gets everything as it is now, from a shared reading.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from time import monotonic
from typing import NamedTuple
from uuid import uuid4

import structlog
from psycopg import Connection
from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool

from db.access_tokens import still_valid
from db.connection.transactions import in_transaction
from db.views.documents import begin_reading, deployment_summary, plain
from db.views.fleet_changes import OVERLAP, Changes, caught_up, changes_since
from domain.installation.tokens import Token

MOST_WAITING = 100
"""The most pieces that wait for a listener. A slower one is ended, and catches up when it comes again."""
Scope = tuple[str | None, Sequence[str]]
Document = tuple[str, str, dict[str, object]]
"""An event: its kind, its deployment, and its content."""

_TOLD_AGAIN_AFTER = 3 * OVERLAP


@dataclass(frozen=True, slots=True)
class Event:
    """One event, as it is sent. `number`: its place among those of this process."""

    number: int
    deployment: str
    text: str


@dataclass(eq=False, slots=True)
class Listener:
    """A listener, and the pieces that are still to be sent; None at the end of them.

    `number`: of the last event that was told before it came. `session`: the hash of the page's session that it is
    heard in.
    """

    token: Token
    deployment: str | None
    number: int = 0
    session: bytes | None = None
    queue: asyncio.Queue[bytes | None] = field(default_factory=lambda: asyncio.Queue(MOST_WAITING + 1))

    def takes(self, deployment: str) -> bool:
        """Whether events of this deployment are for it."""
        return self.deployment in (None, deployment) and self.token.sees(deployment)

    @property
    def holds(self) -> set[str | bytes]:
        """The names that must stay valid for it to listen: its token, and its session."""
        return {self.token.name} | ({self.session} if self.session else set())

    @property
    def scope(self) -> Scope:
        """Listeners of one scope get the same events."""
        return self.deployment, self.token.deployments

    @property
    def names(self) -> Sequence[str] | None:
        """The deployments of its events; None: all."""
        if self.deployment is not None:
            return [self.deployment]
        return None if self.token.is_for_all else self.token.deployments

    @property
    def is_behind(self) -> bool:
        """Whether it takes events slower than they come."""
        return self.queue.qsize() >= MOST_WAITING

    def end(self) -> None:
        """Send nothing more than what waits already."""
        if not self.queue.full():
            self.queue.put_nowait(None)


def give(listeners: Iterable[Listener], events: Sequence[Event]) -> list[Listener]:
    """Give each listener its events, in one piece made once for a scope. Returns the listeners that are behind."""
    pieces: dict[Scope, bytes] = {}
    behind = []
    for listener in listeners:
        if listener.is_behind:
            behind.append(listener)
            continue
        if listener.scope not in pieces:
            pieces[listener.scope] = joined(event.text for event in events if listener.takes(event.deployment))
        if pieces[listener.scope]:
            listener.queue.put_nowait(pieces[listener.scope])
    return behind


@dataclass(slots=True)
class Telling:
    """Remembers the records that were sent: each is read again for a while, and sent again when it has changed."""

    _sent_at: dict[tuple[object, object], datetime] = field(default_factory=dict)

    def new(self, changes: Changes) -> Iterator[Document]:
        """Yield the documents that were not sent yet, and remember them."""
        self._sent_at = {key: at for key, at in self._sent_at.items() if changes.at - at <= _TOLD_AGAIN_AFTER}
        for kind, deployment, document in documents_of(changes):
            if kind == "history":
                key = (document["id"], document["attempts"])
                if key in self._sent_at:
                    continue
                self._sent_at[key] = changes.at
            yield kind, deployment, document


def cursor_of(boot: str, number: int, at: datetime) -> str:
    """The id of an event: the process that sent it, its number there, and its time by the clock of Postgres."""
    return f"{boot}-{number}-{round(at.timestamp() * 1e6)}"


def instant_of(cursor: str) -> datetime:
    """The time of the event of this id; long ago, when the id is not ours."""
    try:
        return datetime.fromtimestamp(int(cursor.split("-")[2]) / 1e6, UTC)
    except (ValueError, IndexError, OverflowError, OSError):
        return datetime(2000, 1, 1, tzinfo=UTC)


def documents_of(changes: Changes) -> Iterator[Document]:
    """Yield the records first, then the new states."""
    for record in changes.noted:
        yield "history", record.deployment, plain(record)
    for view in changes.deployments:
        yield "deployment", view.name, deployment_summary(view)


def text_of(cursor: str, kind: str, document: object) -> str:
    """The event as text; `cursor`: its id, with which a listener continues after it."""
    return f"id: {cursor}\nevent: {kind}\ndata: {json.dumps(document, separators=(',', ':'))}\n\n"


def joined(texts: Iterable[str]) -> bytes:
    return "".join(texts).encode()


_SHARED_SECONDS = 2.0
"""A reading is shared for 2 s: after a restart of the server all streams come back at once."""
_Wanted = tuple[tuple[str, ...] | None, datetime]


class Reading(NamedTuple):
    """The text of a reading. `number`: of the last event before it. `at`: when it was read, in monotonic seconds."""

    number: int
    at: float
    text: bytes

    @property
    def is_old(self) -> bool:
        """Whether it is too old to be shared."""
        return monotonic() - self.at > _SHARED_SECONDS


@dataclass(frozen=True, slots=True)
class Readings:
    """The recent readings, by the names of their deployments, and since when."""

    engine: Engine
    _cache: dict[_Wanted, Reading] = field(default_factory=dict)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of(self, names: tuple[str, ...] | None, since: datetime, number: int, cursor: str) -> Reading:
        """A reading that may be shared, or a new one: one at a time, since a whole fleet is large.

        `number`, `cursor`: of the event that was told last, as of now.
        """
        async with self._one_at_a_time:
            reading = self._cache.get((names, since))
            if reading is None or reading.is_old:
                text = await run_in_threadpool(self._load, names, since, cursor)
                reading = self._cache[names, since] = Reading(number, monotonic(), text)
        return reading

    def forget_old(self) -> None:
        """Drop readings that are too old."""
        for key in [key for key, reading in self._cache.items() if reading.is_old]:
            del self._cache[key]

    def _load(self, names: tuple[str, ...] | None, since: datetime, cursor: str) -> bytes:
        def look(connection: Connection) -> bytes:
            begin_reading(connection)
            changes = caught_up(connection, names, since)
            return joined(text_of(cursor, kind, document) for kind, _, document in documents_of(changes))

        return in_transaction(self.engine, look)


_READ_SECONDS = 0.5
_PAUSE_SECONDS = 0.1
"""The pause between two reads: changes in between are sent together."""
_VALID_SECONDS = 5.0
_KEPT = 2_000
_REST_SECONDS = 10.0
"""Reading continues for 10 s after the last listener has left: most come back at once."""
_BEGINS_SECONDS = 5.0
_log = structlog.get_logger(__name__)


class ChangeReader:
    """Reads in a thread, and sends events to its listeners. `fault`: why it cannot read, or None."""

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
        checked_at = monotonic()
        while True:
            await self._rest()
            await self._try(self._poll)
            self._readings.forget_old()
            if monotonic() - checked_at > _VALID_SECONDS:
                checked_at = monotonic()
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
        """Listen from now on; `leave` ends it. `session`: the hash of the session behind it, if there is one."""
        listener = Listener(token, deployment, self._number, session)
        self.listeners.add(listener)
        self._is_heard.set()
        return listener

    def leave(self, listener: Listener) -> None:
        self.listeners.discard(listener)
        self._left_at = monotonic()

    async def begins(self) -> None:
        """Wait until a listener that came while nothing was read misses nothing any more."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_current.wait(), _BEGINS_SECONDS)

    @property
    def cursor(self) -> str:
        """The id of the last event: with it a listener continues where it was."""
        at = self._last.at if self._last else datetime.now(UTC) - timedelta(days=1)
        return cursor_of(self._boot, self._number, at)

    async def missed(self, listener: Listener, last_event_id: str) -> bytes:
        """The events since `last_event_id`; everything as it is now when that event is old or of another process."""
        boot, _, rest = last_event_id.partition("-")
        number = rest.partition("-")[0]
        if boot == self._boot and number.isdigit() and self._first <= int(number) + 1:
            return self._kept_since(listener, int(number))
        names = None if listener.names is None else tuple(listener.names)
        reading = await self._readings.of(names, instant_of(last_event_id), self._number, self.cursor)
        return reading.text + self._kept_since(listener, reading.number)

    def _kept_since(self, listener: Listener, after: int) -> bytes:
        """The kept events after that one, up to the arrival of the listener."""
        return joined(
            event.text
            for event in self._kept
            if after < event.number <= listener.number and listener.takes(event.deployment)
        )

    @property
    def _first(self) -> int:
        return self._kept[0].number if self._kept else self._number + 1

    async def _rest(self) -> None:
        """Wait while nobody listens. What was read before is old then, so numbers begin again as in another process."""
        if self.listeners or monotonic() - self._left_at < _REST_SECONDS:
            return
        self._is_current.clear()
        self._is_heard.clear()
        await self._is_heard.wait()
        self._boot, self._last = uuid4().hex[:8], None
        self._kept.clear()

    async def _try(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run, and survive any error: the trouble may be over soon, and listeners must get what comes then."""
        try:
            await work()
        except Exception as error:  # noqa: BLE001  (one that is let through would end every stream's news for good)
            message = str(error).partition("\n")[0]
            if self.fault is None:
                _log.warning("changes cannot be read", error=message)
            self.fault = f"{type(error).__name__}: {message}"

    async def _poll(self) -> None:
        changes, documents = await run_in_threadpool(self._look)
        self.fault, self._last = None, changes
        self._tell(documents)
        self._is_current.set()

    def _look(self) -> tuple[Changes, list[Document]]:
        changes = in_transaction(self._engine, self._changes)
        return changes, list(self._telling.new(changes))

    def _changes(self, connection: Connection) -> Changes:
        begin_reading(connection)
        states = self._last.states if self._last else {}
        return changes_since(connection, states, self._last.at if self._last else None)

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
