"""How the evidence of a judged canary came to be: a point now and then, for people to look at as curves."""

from dataclasses import dataclass
from datetime import datetime

from domain.judge.judged import measures
from domain.judge.settings import Judge
from domain.model.canary import Sums

DENSE = 100
"""A point is due once a hundredth of the time since the first has passed: some hundreds are kept of a whole day."""


@dataclass(frozen=True, slots=True)
class Point:
    """What was sent to both sides and failed until then, and how far the log e-values had come, at this weight.

    `harm`: of the measure that had come furthest, over all weights. `good`: of the one that lagged most, at this one.
    """

    at: datetime
    weight: int
    canary: int
    canary_failed: int
    control: int
    control_failed: int
    harm: float
    good: float


def point_of(settings: Judge, sums: Sums, at: datetime, weight: int) -> Point:
    """The point that these sums come to. Failures are counted where errors are judged."""
    sent, found = sums.failed.total, list(measures(settings, sums))
    counts = (sent.canary, sent.canary_failed, sent.control, sent.control_failed)
    return Point(at, weight, *counts, max(its.harm for its in found), min(its.good for its in found))


def is_due(first: datetime | None, last: datetime | None, at: datetime) -> bool:
    """Say whether a point is kept of this time, after those."""
    return first is None or last is None or at - last >= (at - first) / DENSE
