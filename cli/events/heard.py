"""One event as it was heard, and a stream of them that is opened again when it breaks."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cli.terminal.exits import UnreachableError

BEGUN = "begun"
"""The kind of the event with which a stream begins to listen: nothing has happened."""
_AGAIN_SECONDS = 1.0
_PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Heard:
    """An event. `id`: with which a later stream goes on after it; `kind`: deployment, history or begun."""

    id: str
    kind: str
    data: dict[str, Any]

    @property
    def deployment(self) -> str:
        """The name of the one that it is about."""
        return str(self.data["name" if self.kind == "deployment" else "deployment"])


def lasting(listen: Callable[[str | None], Iterator[Heard]], last: str | None) -> Iterator[Heard]:
    """The events of `listen`, which is called with the id of the event that was heard last, again after each break.

    Raises UnreachableError when it cannot be opened at first, or not again for a minute.
    """
    lost_at: float | None = None
    has_begun = False
    while True:
        try:
            for heard in listen(last):
                last, lost_at, has_begun = heard.id or last, None, True
                yield heard
        except UnreachableError:
            lost_at = lost_at or time.monotonic()
            if not has_begun or time.monotonic() - lost_at > _PATIENCE_SECONDS:
                raise
        time.sleep(_AGAIN_SECONDS)
