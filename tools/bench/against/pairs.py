"""The verdict over pairs: whether this tree is faster than another one, slower, or whether the pairs cannot tell."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import count
from math import comb
from statistics import median
from typing import NamedTuple

LEAST = 10
_CHANCE = 0.05


class Than(StrEnum):
    """What this tree is beside the other one."""

    FASTER = "faster"
    SLOWER = "slower"
    UNKNOWN = "cannot tell"


class Compared(NamedTuple):
    """The median of this tree's time over the other's in a pair, and between which bounds it lies, 19 times of 20."""

    ratio: float
    low: float
    high: float

    @property
    def verdict(self) -> Than:
        """Faster or slower only where both bounds say so."""
        if self.high < 1:
            return Than.FASTER
        return Than.SLOWER if self.low > 1 else Than.UNKNOWN


def compared(ratios: Sequence[float]) -> Compared:
    """Bounds of the median by ranks, which ask nothing of how times are spread: of ten pairs the second and the ninth.

    Raises ValueError for fewer pairs than can tell.
    """
    if len(ratios) < LEAST:
        raise ValueError(f"{len(ratios)} pairs cannot tell; {LEAST} are the fewest")
    ordered, outer = sorted(ratios), 0
    for outer in count():
        if 2 * sum(comb(len(ratios), k) for k in range(outer + 2)) / 2 ** len(ratios) > _CHANCE:
            break
    return Compared(median(ordered), ordered[outer], ordered[-1 - outer])
