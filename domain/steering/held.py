"""A deployment whose row somebody holds: who that is, in one sentence."""

from dataclasses import dataclass
from datetime import timedelta

from domain.text.errors import UnavailableError
from domain.text.numbers import duration


class HeldError(UnavailableError):
    """Somebody holds what the command changes; PostgreSQL works."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The session that holds a deployment's row. None where Postgres does not show it, or it has just ended.

    `program`: as it calls itself, with its host and process where it is ours. `held_for`: how long its
    transaction has gone on.
    """

    process: int | None = None
    program: str | None = None
    held_for: timedelta | None = None

    def sentence(self, deployment: str) -> str:
        """Such as "web has been held for 40 s by rollway worker1 4711, process 123 of PostgreSQL"."""
        if self.process is None:
            return f"{deployment} is held by another session"
        time = f" for {duration(self.held_for)}" if self.held_for is not None else ""
        program = f"{self.program}, " if self.program else ""
        return f"{deployment} has been held{time} by {program}process {self.process} of PostgreSQL"


def refusal(deployment: str, holder: Holder) -> HeldError:
    """Return the refusal for whom nothing else is left than to ask again."""
    end = f"; 'SELECT pg_terminate_backend({holder.process})' ends it" if holder.process is not None else ""
    return HeldError(f"{holder.sentence(deployment)}; ask again when it is done{end}", deployment=deployment)
