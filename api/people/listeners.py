"""Who listens to changes, and the events that listeners get."""

import asyncio
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from db.views.changes import Changes
from db.views.documents import deployment_summary, plain
from domain.tokens import Token

MOST_WAITING = 100
"""Pieces that a listener has not taken yet. One that takes them slower is ended, and catches up when it comes again."""
Scope = tuple[str | None, Sequence[str]]
Document = tuple[str, str, dict[str, object]]
"""Of an event: its kind, its deployment, and what it says."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event, as it is sent. `number`: its place among those of this process."""

    number: int
    deployment: str
    text: str


@dataclass(eq=False, slots=True)
class Listener:
    """Who listens, and the pieces that are still to be sent; None at the end of them."""

    token: Token
    deployment: str | None
    queue: asyncio.Queue[bytes | None] = field(default_factory=lambda: asyncio.Queue(MOST_WAITING + 1))

    def takes(self, deployment: str) -> bool:
        """Whether events of this deployment are for it."""
        return self.deployment in (None, deployment) and self.token.sees(deployment)

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


def documents_of(found: Changes) -> Iterator[Document]:
    """What was noted first, then what it has come to."""
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
