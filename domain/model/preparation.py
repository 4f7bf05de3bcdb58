"""The preparation of a host for a revision: its states, and the number of hosts at once."""

from dataclasses import dataclass

from domain.model.states import Word

AT_ONCE = 2
"""The number of hosts that are prepared for a revision at the same time, so that a registry is not flooded."""


class PreparationState(Word):
    """The state of a preparation."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Preparation:
    """The work of a host before its first replica of a revision. `words`: why it failed, or its last line of output.

    `seconds`: the time that it took until now, or until its end; None while it waits, and for decisions.
    """

    host: str
    state: PreparationState
    words: str = ""
    seconds: float | None = None
