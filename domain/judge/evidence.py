"""What a judge has seen: for each interval the answers of both sides, as failures or as slow first bytes."""

from collections.abc import Iterator, Sequence

from domain.judge.evalues import Counts
from domain.model.answers import FIRST_BYTE_MS
from domain.model.canary import Evidence

LEAST_FOR_A_PERCENTILE = 100
"""Answers of the control that must be known before any is called slow."""


def failures(evidence: Sequence[Evidence]) -> list[Counts]:
    """The answers that failed, of all."""
    return [Counts(seen.canary.done, seen.canary.failed, seen.control.done, seen.control.failed) for seen in evidence]


def slow_ones(evidence: Sequence[Evidence], percentile: float) -> list[Counts]:
    """The slow answers, of all that began. What is slow follows from the intervals before, never from its own."""
    return list(_slow_ones(evidence, percentile))


def _slow_ones(evidence: Sequence[Evidence], percentile: float) -> Iterator[Counts]:
    known = [0] * (len(FIRST_BYTE_MS) + 1)
    for seen in evidence:
        canary, control = seen.canary.first_byte, seen.control.first_byte
        bucket = _bucket(known, percentile)
        if bucket is None:
            yield Counts(0, 0, 0, 0)
        else:
            yield Counts(sum(canary), sum(canary[bucket + 1 :]), sum(control), sum(control[bucket + 1 :]))
        known = [before + new for before, new in zip(known, control, strict=True)]


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
