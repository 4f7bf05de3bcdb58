"""Whether Redis answers this worker: who is not answered is asked for nothing, and says so with its signs of life."""

from dataclasses import dataclass, field
from time import monotonic

_DEAF_AFTER_SECONDS = 5.0
"""Longer than a server takes that is started anew, and than an answer that comes late."""


@dataclass(slots=True)
class Hearing:
    """One worker's hearing: who asks Redis something every other second notes here that an answer came."""

    _last: float = field(default_factory=monotonic)

    def note(self) -> None:
        """Redis has answered."""
        self._last = monotonic()

    def is_deaf(self) -> bool:
        """Whether Redis has not answered for some seconds."""
        return monotonic() - self._last > _DEAF_AFTER_SECONDS
