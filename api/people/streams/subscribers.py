"""The listeners to changes, and the events that they get."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from db.views.change_feed import OVERLAP, Changes
from db.views.documents import deployment_summary, plain
from domain.installation.tokens import Token

MOST_WAITING = 100
"""Pieces that a listener has not taken yet. One that takes them slower is ended, and catches up when it comes again."""
Scope = tuple[str | None, Sequence[str]]
Document = tuple[str, str, dict[str, object]]
"""An event: its kind, its deployment, and what it says."""

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
        """What lets it listen: all of it must be valid."""
        return {self.token.name} | ({self.session} if self.session else set())

    @property
    def scope(self) -> Scope:
        """Listeners of one scope get the same events."""
        return self.deployment, self.token.deployments

    @property
    def names(self) -> Sequence[str] | None:
        """The deployments that it is told of; None: all."""
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
    """The events for each, in one piece that is made once for all of one scope. Returns those that are behind."""
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
    """Knows what was told: a record is read again and again for a while, and told each time that it has changed."""

    _told: dict[tuple[object, object], datetime] = field(default_factory=dict)

    def new(self, found: Changes) -> Iterator[Document]:
        """Yield what was not told yet; from now on it was."""
        self._told = {key: at for key, at in self._told.items() if found.at - at <= _TOLD_AGAIN_AFTER}
        for kind, deployment, document in documents_of(found):
            if kind == "history":
                key = (document["id"], document["attempts"])
                if key in self._told:
                    continue
                self._told[key] = found.at
            yield kind, deployment, document


def cursor_of(boot: str, number: int, at: datetime) -> str:
    """The id of an event: which process told it, as which of its events, and when by the clock of Postgres."""
    return f"{boot}-{number}-{round(at.timestamp() * 1e6)}"


def instant_of(cursor: str) -> datetime:
    """Return when the event of this id was told; long ago, when the id is none of ours."""
    try:
        return datetime.fromtimestamp(int(cursor.split("-")[2]) / 1e6, UTC)
    except (ValueError, IndexError, OverflowError, OSError):
        return datetime(2000, 1, 1, tzinfo=UTC)


def documents_of(found: Changes) -> Iterator[Document]:
    """Yield what was noted first, then what it has come to."""
    for noted in found.noted:
        yield "history", noted.deployment, plain(noted)
    for view in found.deployments:
        yield "deployment", view.name, deployment_summary(view)


def text_of(cursor: str, kind: str, document: object) -> str:
    """The event as it is sent; `cursor`: with which a listener goes on after it."""
    return f"id: {cursor}\nevent: {kind}\ndata: {json.dumps(document, separators=(',', ':'))}\n\n"


def joined(texts: Iterable[str]) -> bytes:
    """Events in one piece."""
    return "".join(texts).encode()
