"""Processor time that tokens may take for plans: paid at the door, one plan at a time, what is left given back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from api.people.asking.rates import AtOnce, Rates
from domain.installation.tokens import Token

_MOST_SECONDS = 10.0
"""The longest plan takes half of it on a slow machine. Who is let in pays this much, and gets back what is left."""


@dataclass(slots=True)
class Bill:
    """The seconds of processor time that a plan has taken until now."""

    seconds: float = 0.0


@dataclass(slots=True)
class Work:
    """`rates`: the seconds of processor time that a token may take."""

    rates: Rates
    _under_way: AtOnce = field(default_factory=lambda: AtOnce(1))

    @contextmanager
    def let_in(self, token: Token) -> Iterator[Bill]:
        """Let in one plan of a token. Raises TooManyRequestsError for a second one, and when its time is spent."""
        who = f"the token {token.name}"
        with self._under_way.place(who, f"a plan of {who} is under way, and one at a time is made"):
            self.rates.refuse_spent(who, f"the plans of {who} have taken too much time")
            self.rates.spend(who, _MOST_SECONDS)
            bill = Bill()
            try:
                yield bill
            finally:
                self.rates.spend(who, bill.seconds - _MOST_SECONDS)
