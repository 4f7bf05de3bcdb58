"""How often, or how much, who may ask: a bucket for each, which time fills again."""

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from api.people.problems import TooManyRequestsError

_MOST_BUCKETS = 10_000


@dataclass(slots=True)
class AtOnce:
    """The most that one may have under way at once, so that nobody takes all the places there are."""

    most: int
    _under_way: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def place(self, who: str, why: str) -> Iterator[None]:
        """Take a place until the block ends. Raises TooManyRequestsError when `who` has none left."""
        if self._under_way[who] >= self.most:
            raise TooManyRequestsError(f"{why}; ask again in 1 s", seconds=1)
        self._under_way[who] += 1
        try:
            yield
        finally:
            self._under_way[who] -= 1
            if not self._under_way[who]:
                del self._under_way[who]


@dataclass(slots=True)
class Rates:
    """`rate`: requests a second for long; `burst`: at once. Who has not asked for longest is forgotten first."""

    rate: float
    burst: float
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, who: str) -> None:
        """One request. Raises TooManyRequestsError, which says after how many seconds the next one may come."""
        self.refuse_next(who)
        self.spend(who, 1)

    def refuse_next(self, who: str) -> None:
        """Raises TooManyRequestsError where `take` would, and takes none."""
        self.refuse_spent(who, f"{who} may ask {self.rate:g} times a second for long")

    def refuse_spent(self, who: str, why: str) -> None:
        """Raises TooManyRequestsError for who has none left, and takes none."""
        if self.is_spent(who):
            seconds = math.ceil((1 - self._left(who)) / self.rate)
            raise TooManyRequestsError(f"{why}; ask again in {seconds} s", seconds=seconds)

    def is_spent(self, who: str) -> bool:
        """Whether there is no whole one left."""
        return self._left(who) < 1

    def spend(self, who: str, cost: float) -> None:
        """Charge `who` for what was asked for; who has spent more than was left waits the longer."""
        self._keep(who, self._left(who) - cost)

    def _left(self, who: str) -> float:
        left, at = self._buckets.get(who, (self.burst, 0.0))
        return min(self.burst, left + (time.monotonic() - at) * self.rate)

    def _keep(self, who: str, left: float) -> None:
        self._buckets[who] = (left, time.monotonic())
        self._buckets.move_to_end(who)
        if len(self._buckets) > _MOST_BUCKETS:
            self._buckets.popitem(last=False)
