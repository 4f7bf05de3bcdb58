"""Samples the fates of replicas: a run is like a stretch of the past, scaled to the present.

    measured   2 2 2 2 2 2 3 3 3 4 4 4 4 4 4      the oldest first
               └─before──┘└like┘   └──now──┘
    drawn      one of `like`, times the median of `now` over that of `before`: 3 * 4 / 2 = 6

A busy machine is slow for all replicas of a rollout, and the next rollout finds it about as busy. So what the past
teaches is how much times change from one rollout to the next, and the last ones say what they are now.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from domain.planning.replica_timings import Timings
from domain.planning.simulator import Fate, Fates

Draw = Callable[[], float]
"""A number from 0 to below 1, another one each time; `random.Random(seed).random` is one."""

ALARM_SECONDS = 1.0
"""A time that a handler named is seen by the alarm, which looks each second."""
_FEWEST = 3
"""A stretch of the past has as many measurements as the rollout has replicas, and at least this number."""
_STRETCHES = 6
"""A past with fewer stretches than this does not show how times change: they are taken as they were."""
_ASSUMED_START_SECONDS = 1.0
_ASSUMED_STOP_SECONDS = 1.0


@dataclass(slots=True)
class LearnedFates(Fates):
    """The fates of one run, in which no start fails.

    `replicas`: how many the rollout has. `moment`: of the past that the run is like, from 0, the oldest, to 1.
    """

    timings: Timings = field(default_factory=Timings)
    draw: Draw = lambda: 0.5
    replicas: int = _FEWEST
    moment: float = 0.5

    def __post_init__(self) -> None:
        self.moment = self.draw()

    def of_replica(self) -> Fate:
        return Fate(
            start_seconds=self._one_of(self.timings.starts, _ASSUMED_START_SECONDS, self.replicas),
            stop_seconds=self._one_of(self.timings.stops, _ASSUMED_STOP_SECONDS, self.replicas),
        )

    def wake_seconds(self) -> float:
        """From the news of a replica to the look that it leads to."""
        return self._one_of(self.timings.wakes, 0, _FEWEST)

    def alarm_seconds(self) -> float:
        """From a time that a handler named to the look that it leads to: anything up to the next alarm."""
        return self.draw() * ALARM_SECONDS

    def _one_of(self, samples: Sequence[float], assumed: float, in_a_row: int) -> float:
        if not samples:
            return assumed
        length = max(_FEWEST, min(in_a_row, len(samples) // _STRETCHES))
        before = 2 * length if len(samples) >= _STRETCHES * length else 0
        begins = before + round(self.moment * max(0, len(samples) - length - before))
        like = samples[begins : begins + length]
        return like[int(self.draw() * len(like))] * _change(samples[begins - before : begins], samples[-before:])


def _change(before: Sequence[float], now: Sequence[float]) -> float:
    """The factor by which times have grown since; 1 if none are known from before, or they were 0."""
    usual = median(before) if before else 0.0
    return median(now) / usual if usual > 0 else 1.0
