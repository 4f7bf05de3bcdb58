"""Events as the database has them, read twice a second."""

import time
from collections.abc import Callable, Iterator, Sequence

from api.people.streams.listeners import Telling, cursor_of, instant_of
from cli.events.heard import BEGUN, Heard
from cli.servers import Reader
from db.views.fleet.changes import Changes, caught_up, changes_since

_READ_SECONDS = 0.5
_TELLER = "cli"
"""In ids: a server takes them for those of another process, and goes on from their time."""


def listening_here(reader: Reader, names: Sequence[str] | None) -> Callable[[str | None], Iterator[Heard]]:
    """Events of these deployments, or of all; see `lasting`."""

    def listen(last: str | None) -> Iterator[Heard]:
        telling = Telling()
        seen = reader.read(changes_since, {}, None)
        yield Heard(_cursor(seen), BEGUN, {})
        if last is not None:
            yield from _heard(telling, reader.read(caught_up, names, instant_of(last)), names)
        while True:
            time.sleep(_READ_SECONDS)
            seen = reader.read(changes_since, seen.states, seen.at)
            yield from _heard(telling, seen, names)

    return listen


def _heard(telling: Telling, found: Changes, names: Sequence[str] | None) -> Iterator[Heard]:
    for kind, deployment, document in telling.new(found):
        if names is None or deployment in names:
            yield Heard(_cursor(found), kind, document)


def _cursor(found: Changes) -> str:
    return cursor_of(_TELLER, 0, found.at)
