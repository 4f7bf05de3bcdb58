"""The recorder's transactions: what proxies know, and which drains and weights all of them know."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import psycopg
from sqlalchemy import Engine

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

_REFUSALS = (psycopg.DataError, psycopg.IntegrityError, UnicodeError)


@dataclass(frozen=True, slots=True)
class Written:
    """`released`: routes that every live proxy has let go of. `refused`: proxies that cannot be stored, and why."""

    released: list[DrainedRoute]
    refused: dict[str, str]


class Writer:
    """Writes as one server for proxies, under an id of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._id = uuid4().hex
        self._has_begun = False

    def write(self, seen: Sequence[SeenProxy], acks: Sequence[Ack], *, beats: bool) -> Written:
        """Write what proxies know, and then, in transactions of their own, what follows from it, if anything does.

        Who waits for a deployment's lock must not keep others from writing what proxies know.

        `beats`: with a sign of life of this server. When Postgres refuses something, each proxy is written by itself.
        """
        try:
            follows = in_transaction(self._engine, partial(self._note, seen=seen, acks=acks, beats=beats))
            refused = {}
        except _REFUSALS:
            follows, refused = Follows(weights=True, drains=True), self._note_each(seen, acks, beats=beats)
        self._has_begun = True
        if follows.weights:
            in_transaction(self._engine, note_known_weights)
        released = in_transaction(self._engine, release_drained) if follows.drains else []
        return Written(released, refused)

    def note_refused(self, names: Collection[str], no_more: Collection[str], why: str) -> None:
        """Note which certificates a proxy does not take over, in its words, and which it does now."""

        def note(connection: psycopg.Connection) -> None:
            note_refused(connection, names, storable(why))
            note_refused(connection, no_more, None)

        in_transaction(self._engine, note)

    def _note_each(self, seen: Sequence[SeenProxy], acks: Sequence[Ack], *, beats: bool) -> dict[str, str]:
        in_transaction(self._engine, partial(self._note, seen=(), acks=(), beats=beats))
        self._has_begun = True
        refused: dict[str, str] = {}
        for node in sorted({proxy.node_id for proxy in seen} | {ack.node_id for ack in acks}):
            own = [proxy for proxy in seen if proxy.node_id == node]
            its_acks = [ack for ack in acks if ack.node_id == node]
            try:
                in_transaction(self._engine, partial(self._note, seen=own, acks=its_acks, beats=False))
            except _REFUSALS as error:
                refused[node] = str(error).partition("\n")[0]
        return refused

    def _note(
        self, connection: psycopg.Connection, *, seen: Sequence[SeenProxy], acks: Sequence[Ack], beats: bool
    ) -> Follows:
        if not self._has_begun:
            begin_publishing(connection, self._id)
        elif beats:
            note_publisher(connection, self._id)
        note_proxies(connection, seen)
        note_acks(connection, acks)
        return what_follows(connection)
