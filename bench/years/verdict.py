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


@dataclass(frozen=True, slots=True)
class Growth:
    """The largest values of the middle and the last third; of memory, which comes and goes, the least."""

    name: str
    before: int
    after: int

    @property
    def goes_on(self) -> bool:
        """Whether it is more than a tenth, and more than chance; of memory by any share; of receipts never."""
        if self.name in _RECEIPTS:
            return False
        if self.name.startswith(_MEMORY):
            return self.after > self.before + _LEAK
        return self.after > self.before * _SHARE and self.after > self.before + _SLACK[self.name.split()[0]]


def growths(names: Sequence[str], rows: Sequence[Sequence[int]]) -> list[Growth]:
    """One for each column of the samples. Raises ValueError when there are fewer than three samples."""
    third = len(rows) // 3
    if not third:
        raise ValueError(f"{len(rows)} samples are too few to see growth")
    middle, last = rows[third : len(rows) - third], rows[len(rows) - third :]
    found = []
    for column, name in enumerate(names):
        of = min if name.startswith(_MEMORY) else max
        found.append(Growth(name, of(row[column] for row in middle), of(row[column] for row in last)))
    return found
