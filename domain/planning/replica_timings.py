"""The times of a deployment's past replicas: of starts and stops, and how often a start fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Span:
    """Half of the times are at most `p50` seconds, nine of ten at most `p90`."""

    p50: float
    p90: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self:
        """Sum up some measured times; at least one is needed."""
        ordered = sorted(seconds)
        return cls(quantile(ordered, 0.5), quantile(ordered, 0.9))

    def __str__(self) -> str:
        """E.g. "12 to 18 s"."""
        low, high = in_words(self.p50), in_words(self.p90)
        return f"{low} s" if low == high else f"{low} to {high} s"


@dataclass(frozen=True, slots=True)
class Timings:
    """Times in seconds, as they were measured; none where nothing is known yet.

    `starts`: from creation until healthy. `stops`: from drain until gone. `wakes`: from a change until its decision.
    `preparations`: of one host. The oldest first. `failed_starts`: the number of other replicas that never came up,
    though some of their revision did. `never_up`: the number of `revisions` of which none did; their mistakes predict
    nothing.
    """

    starts: tuple[float, ...] = ()
    stops: tuple[float, ...] = ()
    wakes: tuple[float, ...] = ()
    failed_starts: int = 0
    never_up: int = 0
    revisions: int = 0
    preparations: tuple[float, ...] = ()

    @property
    def failure_rate(self) -> float:
        """The share of the past starts that failed, from 0 to 1."""
        return self.failed_starts / (len(self.starts) + self.failed_starts) if self.failed_starts else 0.0


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value that `share` of the ordered values do not exceed, interpolated between two of them."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def in_words(seconds: float) -> str:
    """Seconds as people read them: 0.4, 3.2, 41, 380."""
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"  # noqa: PLR2004  (tenths matter below that only)
