"""Everything as it is now, for who comes back after a while: read once for all who come back after the same event."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import NamedTuple

from psycopg import Connection
from sqlalchemy import Engine
from starlette.concurrency import run_in_threadpool

from api.people.streams.subscribers import documents_of, joined, text_of
from db.connection.transactions import in_transaction
from db.views.change_feed import caught_up
from db.views.documents import begin_reading

_SHARED_SECONDS = 2.0
"""A reading is shared for so long: a server that starts has lost all its streams, and they come back at once."""
_Wanted = tuple[tuple[str, ...] | None, datetime]


class Reading(NamedTuple):
    """What is told of it. `number`: of the last event that was told before. `at`: when, in monotonic seconds."""

    number: int
    at: float
    told: bytes

    @property
    def is_old(self) -> bool:
        """Whether nobody may be told it any more."""
        return monotonic() - self.at > _SHARED_SECONDS


@dataclass(frozen=True, slots=True)
class Readings:
    """The readings of late, by the deployments that are told of, all or some by name, and since when."""

    engine: Engine
    _made: dict[_Wanted, Reading] = field(default_factory=dict)
    _one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def of(self, names: tuple[str, ...] | None, since: datetime, number: int, cursor: str) -> Reading:
        """Return one that may be shared, or make it: one at a time, since a whole fleet is large.

        `number`, `cursor`: of the event that was told last, as of now.
        """
        async with self._one_at_a_time:
            found = self._made.get((names, since))
            if found is None or found.is_old:
                told = await run_in_threadpool(self._read, names, since, cursor)
                found = self._made[names, since] = Reading(number, monotonic(), told)
        return found

    def forget_old(self) -> None:
        """Give back their memory."""
        for wanted in [wanted for wanted, found in self._made.items() if found.is_old]:
            del self._made[wanted]

    def _read(self, names: tuple[str, ...] | None, since: datetime, cursor: str) -> bytes:
        def look(connection: Connection) -> bytes:
            begin_reading(connection)
            found = caught_up(connection, names, since)
            return joined(text_of(cursor, kind, document) for kind, _, document in documents_of(found))

        return in_transaction(self.engine, look)
