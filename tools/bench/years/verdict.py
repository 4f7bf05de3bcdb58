"""Whether something still grows: what the last third of the time reached, against the third before it."""

from collections.abc import Sequence
from dataclasses import dataclass

_SHARE = 1.1
_SLACK = {"bytes": 512 * 1024, "rows": 50, "files": 20, "keys": 20}
"""What comes and goes by chance: a table grows by pages, a rollout more or less is under way."""
_RECEIPTS = ("rows of receipts", "bytes of receipts")
"""The newest 1,000 of each deployment are kept, a number that no variable makes smaller and that no run reaches."""
_MEMORY = "memory"
_LEAK = 1024 * 1024
"""By so much the least that a process needs may grow from third to third: in an hour, by 72 MB a day."""
_CACHED = {"memory of api": 24 * 1024, "memory of worker": 12 * 1024}
"""By so much more for each rollout in a third, by how a name begins: caches of replicas, which end in no such run."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The largest values of the middle and the last third; of memory, which comes and goes, the least.

    `rollouts`: those of a third.
    """

    name: str
    before: int
    after: int
    rollouts: int

    @property
    def goes_on(self) -> bool:
        """Whether it is more than a tenth, and more than chance; of memory by any share; of receipts never."""
        if self.name in _RECEIPTS:
            return False
        if self.name.startswith(_MEMORY):
            cached = sum(each for name, each in _CACHED.items() if self.name.startswith(name))
            return self.after > self.before + _LEAK + cached * self.rollouts
        return self.after > self.before * _SHARE and self.after > self.before + _SLACK[self.name.split()[0]]


def growths(names: Sequence[str], rows: Sequence[Sequence[int]], rollouts: int) -> list[Growth]:
    """One for each column of the samples, over so many rollouts. Raises ValueError for fewer than three samples."""
    third = len(rows) // 3
    if not third:
        raise ValueError(f"{len(rows)} samples are too few to see growth")
    middle, last = rows[third : len(rows) - third], rows[len(rows) - third :]
    found = []
    for column, name in enumerate(names):
        of = min if name.startswith(_MEMORY) else max
        before, after = (of(row[column] for row in part) for part in (middle, last))
        found.append(Growth(name, before, after, rollouts // 3))
    return found
