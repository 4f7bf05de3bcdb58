"""A wait as a value: what for, which inequality holds it, and until when."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from domain.model.deployment import Route
from domain.words.numbers import duration


class WaitsFor(StrEnum):
    """The kind of thing waited for."""

    NOTHING = "nothing"
    WORKER = "worker"
    PERSON = "person"
    ROUTE = "route"
    HOST = "host"
    SECRET = "secret"  # noqa: S105  (the word, and no secret)
    PROXIES = "proxies"
    JUDGE = "judge"
    HOLD = "hold"
    TIME = "time"


class Inequality(NamedTuple):
    """`value` is less, or more, than `limit`, which is what blocks. `words` has both numbers, such as "2 ready < 3"."""

    value: float
    relation: str
    limit: float
    words: str

    @property
    def holds(self) -> bool:
        """Whether it still blocks."""
        return self.value < self.limit if self.relation == "<" else self.value > self.limit


def too_short(passed: timedelta, needed: timedelta, what: str) -> Inequality:
    """So much time has `passed`, and more is `needed`: "1 s in health < 30 s". A second that has begun is none yet."""
    seconds = passed.total_seconds()
    least = f"{needed.total_seconds():g} s" if needed % timedelta(seconds=1) else duration(needed)
    words = f"{duration(timedelta(seconds=max(0, seconds // 1)))} {what} < {least}"
    return Inequality(seconds, "<", needed.total_seconds(), words)


COMES_TO = {"abort": "goes back", "activate": "gives it one"}
"""What follows of what a person types; of all else, it goes on."""


@dataclass(frozen=True, slots=True)
class Waits:
    """A decision's wait, and in `words` how things stand: "1 new starting; 2 of 3 ready", "green is healthy".

    `routes`: the replicas that are waited for. `seconds`: how long that takes them by the policy. `until`: when time
    alone may end it, where a judge looks before. `typed`: what a person is to type, which is not refused. `blocked`:
    which inequalities hold it, worked out when they are read.
    """

    kind: WaitsFor
    words: str
    routes: tuple[Route, ...] = ()
    blocked: Iterable[Inequality] = ()
    seconds: float | None = None
    until: datetime | None = None
    typed: str = ""

    @property
    def reason(self) -> str:
        """The sentence of a decision that waits: "waiting: 1 new starting; 2 of 3 ready"."""
        if self.kind is WaitsFor.NOTHING or self.kind is WaitsFor.HOLD:
            return self.words
        if self.typed:
            return f"waiting: {self.words}; '{self.typed}' {COMES_TO.get(self.verb, 'goes on')}"
        return f"waiting: {self.words}"

    @property
    def verb(self) -> str:
        """The command that a person is to type, without its arguments; empty where nobody is to."""
        return self.typed.split()[1] if self.typed else ""

    @property
    def awaited_verb(self) -> str | None:
        """That command; None where no person is waited for."""
        return self.verb if self.kind is WaitsFor.PERSON else None

    @property
    def blocked_by(self) -> str | None:
        """The inequalities that still block, in words; None where there is none."""
        *most, last = [each.words for each in self.blocked if each.holds] or [""]
        return " and ".join(filter(None, (", ".join(most), last))) or None
