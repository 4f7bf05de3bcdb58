"""What a judge has seen: for each interval the answers of both sides, as failures or as slow first bytes."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from domain.judge.evalues import Counts
from domain.judge.settings import Slow
from domain.model.answers import FIRST_BYTE_MS, Answers
from domain.model.canary import Evidence

LEAST_FOR_A_PERCENTILE = 100
"""Answers of the control that must be known before any is called slow."""
LEAST_FOR_A_SHARE = 40
"""Requests of the canary in a window that are enough; where none has them, all windows count."""
WINDOWS = (1, 2, 4, 8, 16, 32, 64)
"""In so many of the last intervals, some seconds each at most, lies when a request was sent that fails now."""


def failures(evidence: Sequence[Evidence]) -> list[Counts]:
    """The failures, of all requests that were sent; of all that ended where a release before counted those alone."""
    return [
        Counts(sent(new), new.failed, sent(old), old.failed, *shares, new.done)
        for new, old, shares in zip(*_sides(evidence), sent_of(evidence), strict=True)
    ]


def is_refused_counted(evidence: Sequence[Evidence]) -> bool:
    """Whether refusals were counted; evidence of a release before has none, and is judged without them."""
    return any(side.refused is not None for seen in evidence for side in (seen.canary, seen.control))


def refusals(evidence: Sequence[Evidence]) -> list[Counts]:
    """The refusals, of all requests that were sent."""
    return [
        Counts(sent(new), new.refused or 0, sent(old), old.refused or 0, *shares, new.done)
        for new, old, shares in zip(*_sides(evidence), sent_of(evidence), strict=True)
    ]


def slow_ones(evidence: Sequence[Evidence], slow: Slow) -> list[Counts]:
    """The slow answers, of all that began. What is slow follows from the intervals before, never from its own.

    With q the control's percentile, the control is slow beyond q, and the canary beyond T = q + `by_at_least`. Take a
    canary that is later by less: X' <= X + (T - q), or X' <= X · T/q, where X is what the control would have taken.
    Then X' > T only where X > q, so each of all that count as slow is the canary's with its share as the highest
    chance: the null of `harm`, whatever the times are like. Both edges are those of buckets, T's the next above.
    """
    return list(_slow_ones(evidence, slow))


def _slow_ones(evidence: Sequence[Evidence], slow: Slow) -> Iterator[Counts]:
    for seen, bucket, shares in zip(evidence, percentiles_of(evidence, slow), sent_of(evidence), strict=True):
        canary, control = seen.canary.first_byte, seen.control.first_byte
        if bucket is None:
            yield Counts(0, 0, 0, 0)
        else:
            late = canary[first_slow(bucket, slow) :]
            yield Counts(sum(canary), sum(late), sum(control), sum(control[bucket + 1 :]), *shares)


def percentiles_of(evidence: Sequence[Evidence], slow: Slow) -> Iterator[int | None]:
    """For each interval the bucket that the control's percentile was in before; None where nothing is called slow."""
    known, began_at = [0] * (len(FIRST_BYTE_MS) + 1), None
    for seen in evidence:
        began_at = began_at or (seen.at if seen.canary.is_any else None)
        if _is_cold(seen, began_at, slow):
            yield None
            continue
        yield _bucket(known, float(slow.of[1:]))
        known = [before + new for before, new in zip(known, seen.control.first_byte, strict=True)]


def _is_cold(seen: Evidence, began_at: datetime | None, slow: Slow) -> bool:
    """Whether the canary, or one replica of it, has not had its time to warm up."""
    since = max((at for at in (began_at, seen.youngest_at) if at is not None), default=None)
    return began_at is not None and since is not None and seen.at < since + timedelta(seconds=float(slow.warm_up[:-1]))


def first_slow(bucket: int, slow: Slow) -> int:
    """The first bucket that is slow for the canary, where those behind this one are for the control."""
    if bucket == len(FIRST_BYTE_MS):
        return bucket + 1
    return bisect_left(FIRST_BYTE_MS, slow.above(FIRST_BYTE_MS[bucket])) + 1


def sent_of(evidence: Sequence[Evidence]) -> Iterator[tuple[tuple[float, float] | None, int]]:
    """For each interval the lowest and highest share of the canary, and how many wait for it longer than they should.

    The share is looked for in the last 1, 2, 4 ... 64 intervals, for what fails in an interval was sent in one of them:
    in those windows in which the canary got enough, for of few requests the highest share is a matter of luck.
    One that waits was sent longer ago than twice the time in which the control answers as many as it got, first come
    first served, and two intervals more.
    """
    if all(seen.canary.begun is None and seen.control.begun is None for seen in evidence):
        yield from [(None, 0)] * len(evidence)
        return
    canary, control = ([0, *accumulate(sent(each) for each in side)] for side in _sides(evidence))
    done_until = [accumulate(each.done for each in side) for side in _sides(evidence)]
    answered = 0
    for now, (done, others) in enumerate(zip(*done_until, strict=True), start=1):
        windows = [(canary[now] - canary[at], control[now] - control[at]) for at in _beginnings(now)]
        both = [window for window in windows if all(window)]
        large = [window for window in both if window[0] >= LEAST_FOR_A_SHARE] or both
        shares = [new / (new + old) for new, old in large] or [0.0]
        while answered < now and control[answered + 1] <= others:
            answered += 1
        settled = max(0, now - 2 * (now - answered) - 2)
        yield (min(shares), max(shares)), max(0, canary[settled] - done)


def _beginnings(now: int) -> list[int]:
    return sorted({max(0, now - length) for length in WINDOWS})


def _sides(evidence: Sequence[Evidence]) -> tuple[list[Answers], list[Answers]]:
    return [seen.canary for seen in evidence], [seen.control for seen in evidence]


def sent(answers: Answers) -> int:
    """How many requests were sent; where a release before counted those alone, how many ended."""
    return answers.done if answers.begun is None else answers.begun


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
