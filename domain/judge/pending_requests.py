"""The pending requests of a canary beyond its share, by those of both sides and the times of answers."""

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from domain.model.answer_counts import FIRST_BYTE_MS
from domain.model.canary import Exposure

LEAST_FOR_TIMES = 100
"""The number of answers of the control from which its times are known."""
SURELY = 2
"""The number of standard deviations by which the canary's pending requests may exceed its share by chance."""
_EDGES = (0.0, *(edge / 1000 for edge in FIRST_BYTE_MS))


class _Sent(NamedTuple):
    """The requests of about one time, by side. `lasts`: the part of such requests that is still under way."""

    canary: float
    control: float
    lasts: float


_SIDES = ("canary", "control")


def surplus(exposure: Exposure) -> float:
    """Count the pending requests of the canary beyond its likely share of all.

    Where answers take the same time on both sides, the same part of the requests of each age is pending on both. The
    control's times give that part, and so the number that should be pending on each side. Requests that were pending
    before the first look belong to the control alone. A difference of the control from its number counts for the canary
    by its share too: requests that hang on both sides, and answers that are faster or slower than before.

    One lucky look is enough to be found good, and hanging requests must not hide behind it: so the fewest that are
    likely are subtracted, not the mean.
    """
    canary, control = exposure.under_way
    expected, variance = _share_of(exposure, control)
    return max(0.0, canary - max(0.0, expected - SURELY * math.sqrt(variance)))


def _share_of(exposure: Exposure, control: int) -> tuple[float, float]:
    """The canary's share of the control's pending requests, and its variance."""
    parts = list(_parts(exposure))
    new, old = (sum(getattr(its, side) * its.lasts for its in parts) for side in _SIDES)
    if not old:
        return 0.0, 0.0
    times = new / old
    if not _is_timed(exposure):
        return times * control, times * (1 + times) * control
    doubts = [its.lasts * (1 - its.lasts) for its in parts]
    of_new, of_old = (
        sum(getattr(its, side) * doubt for its, doubt in zip(parts, doubts, strict=True)) for side in _SIDES
    )
    beyond = max(0.0, control - old - SURELY * math.sqrt(of_old))
    return times * control, of_new + times * times * of_old + times * (1 + times) * beyond


def _is_timed(exposure: Exposure) -> bool:
    return sum(exposure.first_byte) >= LEAST_FOR_TIMES and any(exposure.seconds)


def _parts(exposure: Exposure) -> Iterator[_Sent]:
    """The requests of each of the last intervals, of all before them, and of the control before the first look.

    Until the times of answers are known, all requests of the last intervals may be under way.
    """
    if not _is_timed(exposure):
        yield from (_Sent(*both, 1.0) for both in exposure.recent)
        return
    area, age, canary, control = _area(exposure.first_byte), 0.0, exposure.canary, exposure.control
    # sums that a version before wrote lack the seconds of their first intervals
    for (new, old), seconds in zip(reversed(exposure.recent), reversed(exposure.seconds), strict=False):
        yield _Sent(new, old, _mean(area, age, age + seconds))
        age, canary, control = age + seconds, canary - new, control - old
    oldest = max(age, (exposure.at - exposure.first_at).total_seconds() if exposure.at and exposure.first_at else 0.0)
    yield _Sent(canary, control, _mean(area, age, oldest))
    yield _Sent(0, exposure.control / oldest * (area[-1] - _at(area, oldest)), 1.0)


def _area(first_byte: Sequence[int]) -> list[float]:
    """The area under the curve of answers that take longer than a time, from 0 to each edge of the buckets."""
    total = sum(first_byte)
    longer = [1.0, *(1 - below / total for below in accumulate(first_byte[:-1]))]
    pieces = zip(pairwise(longer), pairwise(_EDGES), strict=True)
    return [*accumulate(((low + high) / 2 * (end - begin) for (low, high), (begin, end) in pieces), initial=0.0)]


def _at(area: Sequence[float], age: float) -> float:
    place = bisect_right(_EDGES, age)
    if place == len(_EDGES):
        return area[-1]
    begin, end = _EDGES[place - 1 : place + 1]
    return area[place - 1] + (area[place] - area[place - 1]) * (age - begin) / (end - begin)


def _mean(area: Sequence[float], young: float, old: float) -> float:
    return (_at(area, old) - _at(area, young)) / (old - young) if old > young else 0.0
