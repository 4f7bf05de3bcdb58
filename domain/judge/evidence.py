"""Reads an interval: the answers of both sides, as failures, refusals or slow first bytes among what was sent."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from domain.judge.evalues import Counts
from domain.judge.settings import Slow
from domain.judge.under_way import surplus
from domain.model.answers import FIRST_BYTE_MS
from domain.model.canary import Evidence, Exposure

LEAST_FOR_A_PERCENTILE = 100
"""Answers of the control that must be known before any is called slow."""
LEAST_FOR_A_SHARE = 40
"""Requests of the canary in a window that are enough; where none has them, all windows count."""
WINDOWS = (1, 2, 4, 8, 16, 32, 64)
"""In so many of the last intervals, some seconds each at most, lies when a request was sent that fails now."""


class Sent(NamedTuple):
    """The lowest and highest share of the canary in what was sent lately, and its surplus of what is under way."""

    shares: tuple[float, float]
    surplus: float


def exposed(before: Exposure, told: Evidence) -> Exposure:
    """Return what was sent and done until the end of this interval."""
    canary, control = told.canary, told.control
    now = Exposure(
        recent=(*before.recent[1 - WINDOWS[-1] :], (canary.begun, control.begun)),
        seconds=(*before.seconds[1 - WINDOWS[-1] :], _seconds(before.at, told.at)),
        first_at=before.first_at or told.at,
        at=told.at,
        under_way=told.under_way,
        canary=before.canary + canary.begun,
        control=before.control + control.begun,
        first_byte=tuple(map(int.__add__, before.first_byte, control.first_byte)),
    )
    more = surplus(now)
    return replace(now, surplus=more, surplus_since=(before.surplus_since or told.at) if more else None)


def _seconds(begin: datetime | None, end: datetime) -> float:
    return round((end - begin).total_seconds(), 3) if begin and end > begin else 0.0


def sent(exposure: Exposure) -> Sent:
    """Return what is asked of each interval at its end.

    The share is looked for in the last 1, 2, 4 ... 64 intervals, for what fails in an interval was sent in one of them:
    in those windows in which the canary got enough, for of few requests the highest share is a matter of luck. It is 0
    where one side got nothing.
    """
    return Sent(_shares(exposure.recent[::-1]), exposure.surplus)


def _shares(newest_first: Sequence[tuple[int, int]]) -> tuple[float, float]:
    new, old = ([*accumulate(side)] for side in zip(*newest_first, strict=True))
    windows = [(new[at], old[at]) for at in (min(length, len(new)) - 1 for length in WINDOWS)]
    both = [window for window in windows if all(window)]
    large = [window for window in both if window[0] >= LEAST_FOR_A_SHARE] or both
    shares = [canary / (canary + control) for canary, control in large] or [0.0]
    return min(shares), max(shares)


def failures(told: Evidence, sent: Sent) -> Counts:
    """The first tries that failed, of all requests that were sent: what is sent again is no better on either side."""
    new, old = told.canary, told.control
    return Counts(new.begun, new.failed_first, old.begun, old.failed_first, sent.shares, sent.surplus, new.done)


def refusals(told: Evidence, sent: Sent) -> Counts:
    """The refusals, of all requests that were sent; of the control also what failed, for that is no better.

    A canary that is the same refuses no more often than it refuses or fails.
    """
    new, old = told.canary, told.control
    return Counts(new.begun, new.refused, old.begun, old.refused + old.failed, sent.shares, sent.surplus, new.done)


def redirections(told: Evidence, sent: Sent) -> Counts:
    """The redirections, of all requests that were sent."""
    new, old = told.canary, told.control
    return Counts(new.begun, new.redirected, old.begun, old.redirected, sent.shares, sent.surplus, new.done)


def slow_ones(told: Evidence, sent: Sent, bucket: int | None, slow: Slow) -> Counts:
    """The slow answers, of all that began. What is slow follows from the intervals before, never from its own.

    With q the control's percentile, in `bucket`, the control is slow beyond q, and the canary beyond
    T = q + `by_at_least`. Take a canary that is later by less: X' <= X + (T - q), or X' <= X · T/q, where X is what the
    control would have taken. Then X' > T only where X > q, so each of all that count as slow is the canary's with its
    share as the highest chance: the null of `harm`, whatever the times are like. Both edges are those of buckets, T's
    the next above.
    """
    if bucket is None:
        return Counts(0, 0, 0, 0)
    canary, control = told.canary.first_byte, told.control.first_byte
    late = canary[first_slow(bucket, slow) :]
    return Counts(sum(canary), sum(late), sum(control), sum(control[bucket + 1 :]), sent.shares, sent.surplus)


def percentile_of(before: Exposure, told: Evidence, began_at: datetime | None, slow: Slow) -> int | None:
    """The bucket that the control's percentile was in before; None where nothing is called slow in this interval."""
    return None if _is_cold(told, began_at, slow) else _bucket(before.first_byte, float(slow.of[1:]))


def _is_cold(told: Evidence, began_at: datetime | None, slow: Slow) -> bool:
    """Whether the canary, or one replica of it, has not had its time to warm up."""
    since = max((at for at in (began_at, told.youngest_at) if at is not None), default=None)
    return began_at is not None and since is not None and told.at < since + timedelta(seconds=float(slow.warm_up[:-1]))


def first_slow(bucket: int, slow: Slow) -> int:
    """The first bucket that is slow for the canary, where those behind this one are for the control."""
    if bucket == len(FIRST_BYTE_MS):
        return bucket + 1
    return bisect_left(FIRST_BYTE_MS, slow.above(FIRST_BYTE_MS[bucket])) + 1


def _bucket(known: Sequence[int], percentile: float) -> int | None:
    """The bucket in which the percentile of the control lies: what is beyond its upper edge is slow."""
    total, below = sum(known), 0
    if total < LEAST_FOR_A_PERCENTILE:
        return None
    for place, count in enumerate(known):
        below += count
        if 100 * below >= percentile * total:
            return place
    return None
