"""Whether something still grows: what the last third of the time reached, against the third before it."""

from collections.abc import Sequence
from dataclasses import dataclass

_SHARE = 1.1
_SLACK = {"bytes": 512 * 1024, "rows": 50, "files": 20, "keys": 20}
"""What comes and goes by chance: a table grows by pages, a rollout more or less is under way."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The largest values of the middle and the last third."""

    name: str
    before: int
    after: int

    @property
    def goes_on(self) -> bool:
        """Whether it is more than a tenth, and more than chance."""
        return self.after > self.before * _SHARE and self.after > self.before + _SLACK[self.name.split()[0]]


def growths(names: Sequence[str], rows: Sequence[Sequence[int]]) -> list[Growth]:
    """One for each column of the samples. Raises ValueError when there are fewer than three samples."""
    third = len(rows) // 3
    if not third:
        raise ValueError(f"{len(rows)} samples are too few to see growth")
    middle, last = rows[third : len(rows) - third], rows[len(rows) - third :]
    return [
        Growth(name, max(row[column] for row in middle), max(row[column] for row in last))
        for column, name in enumerate(names)
    ]
