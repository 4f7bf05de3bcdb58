"""What the demo promises, and what became of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Promise:
    """What should happen, whether it did, and what was seen."""

    promise: str
    kept: bool
    seen: str
