"""Fates drawn from what was learned: each replica takes as long as some past one did.

Those of one run are drawn from times measured one after the other: a machine that is slow is so for all of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from domain.foresight.learned import Learned, quantile
from domain.foresight.world import Fate, Fates

Draw = Callable[[], float]
"""A number from 0 to below 1, another one each time; `random.Random(seed).random` is one."""

ALARM_SECONDS = 1.0
"""A time that a handler named is seen by the alarm, which looks each second."""
_NEIGHBOURS = 6
"""So many measurements in a row are what one run is drawn from."""
_ASSUMED_START_SECONDS = 1.0
_ASSUMED_STOP_SECONDS = 1.0


@dataclass(slots=True)
class LearnedFates(Fates):
    """The fates of one run. Starts fail as often as they did, but with `fails` False none does.

    `moment`: of the past that the run is like, from 0, the oldest, to 1.
    """

    learned: Learned = field(default_factory=Learned)
    draw: Draw = lambda: 0.5
    fails: bool = False
    moment: float = 0.5

    def __post_init__(self) -> None:
        self.moment = self.draw()

    def of_replica(self) -> Fate:
        """What becomes of the next replica."""
        return Fate(
            start_seconds=self._one_of(self.learned.starts, _ASSUMED_START_SECONDS),
            start_fails=self.fails and self.draw() < self.learned.failure_rate,
            stop_seconds=self._one_of(self.learned.stops, _ASSUMED_STOP_SECONDS),
        )

    def wake_seconds(self) -> float:
        """From the news of a replica to the look that it leads to."""
        return self._one_of(self.learned.wakes, 0)

    def alarm_seconds(self) -> float:
        """From a time that a handler named to the look that it leads to: anything up to the next alarm."""
        return self.draw() * ALARM_SECONDS

    def _one_of(self, measured: Sequence[float], assumed: float) -> float:
        if not measured:
            return assumed
        begins = round(self.moment * max(0, len(measured) - _NEIGHBOURS))
        return quantile(sorted(measured[begins : begins + _NEIGHBOURS]), self.draw())
