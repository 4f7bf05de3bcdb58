"""The reason why a rollout may not move yet, as a value."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Hold:
    """The reason why it waits, in a sentence, and until when at least."""

    reason: str
    until: datetime
