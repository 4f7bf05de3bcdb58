"""How far hosts are with what they do once before any replica of a revision runs there."""

from dataclasses import dataclass

from domain.model.states import Word

AT_ONCE = 2
"""Hosts that are prepared for a revision at the same time: all at once would ask a registry for everything at once."""


class PreparationState(Word):
    """How far a host is with the preparation of a revision."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a host does once before any replica of a revision runs there. `words`: why it failed, or its last line.

    `seconds`: since it began, or until it ended; None while it waits, and for decisions.
    """

    host: str
    state: PreparationState
    words: str = ""
    seconds: float | None = None
