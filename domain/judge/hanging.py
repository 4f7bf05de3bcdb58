"""Requests that wait for longer than a slow answer takes: slow before their first byte comes, if it ever does."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate

from domain.judge.evalues import split_of_all
from domain.judge.evidence import first_slow, percentiles_of, sent, sent_of
from domain.judge.settings import Slow, times
from domain.model.answers import FIRST_BYTE_MS, Answers
from domain.model.canary import Evidence

_TOLD_AFTER = timedelta(seconds=3)
"""By then a first byte is in the counts of its proxy."""


@dataclass(frozen=True, slots=True)
class Hanging:
    """The log e-value against "the canary waits for no longer than allowed", when it was at its highest.

    `canary`: of its at least so many had no first byte within `within_ms`; `control`: of its at most so many were slow.
    """

    shown: float = 0.0
    canary: int = 0
    control: int = 0
    within_ms: int = 0


def hanging(evidence: Sequence[Evidence], slow: Slow) -> Hanging:
    """The highest so far. Its q and T are those of the first interval that is judged, and stay.

    Nobody counts for how long a request has waited. But of what the canary was sent until T before now, all that was
    not too late has come within T, or has ended without a first byte; so the late ones are at least

        sent until then - come within T - ended without one

    Those of the control are at most what it was sent and has not answered within q; what was under way before the first
    interval is taken to be no more than what is under way now. Let each request that would be late
    be a factor, θλ/θ0 or (1 - θλ)/(1 - θ0), in the order in which they are sent, with the highest share: that is the
    supermartingale of `harm`. It grows with the late ones of the canary and falls with those of the control, so with
    fewer of those and more of these it stays below, at each moment, whenever they come to be known.
    """
    buckets = list(percentiles_of(evidence, slow))
    first = next((at for at, seen in enumerate(evidence) if seen.canary.is_any), len(evidence))
    warm = ((at, its) for at, its in enumerate(buckets) if at >= first and its is not None)
    begin, bucket = next(warm, (0, len(FIRST_BYTE_MS)))
    if (late := first_slow(bucket, slow)) > len(FIRST_BYTE_MS):
        return Hanging()
    new, old = [seen.canary for seen in evidence], [seen.control for seen in evidence]
    is_judged = [at > begin and its is not None for at, its in enumerate(buckets)]
    asked = list(accumulate(sent(its) if judged else 0 for its, judged in zip(new, is_judged, strict=True)))
    settled = list(accumulate(_settled(its, late) if at > begin else 0 for at, its in enumerate(new)))
    others = list(accumulate(sent(its) - sum(its.first_byte[: bucket + 1]) for its in old))
    came_late = list(accumulate(sum(its.first_byte[bucket + 1 :]) for its in old))
    before = came_late[begin] + sum(its.failed - its.cut for its in old[: begin + 1])
    found, share, within_ms = Hanging(), 0.0, FIRST_BYTE_MS[late - 1]
    for now, (at, (shares, _)) in enumerate(zip(_until(evidence, within_ms), sent_of(evidence), strict=True)):
        share = max(share, shares[1] if shares and now > begin else 0.0)
        if at <= begin or not share or (waiting := asked[at] - settled[now]) <= 0:
            continue
        at_most = max(others[at] - before, came_late[at] - came_late[begin])
        shown = split_of_all(share, times(slow.worse_than), waiting, at_most)
        if shown > found.shown:
            found = Hanging(shown, waiting, at_most, within_ms)
    return found


def _settled(its: Answers, late: int) -> int:
    return sum(its.first_byte[:late]) + its.failed - its.cut


def _until(evidence: Sequence[Evidence], within_ms: int) -> Iterator[int]:
    """For each interval the last one before it in which what was sent, and is not late, has come and is told of."""
    before, last = timedelta(milliseconds=within_ms) + _TOLD_AFTER, -1
    for seen in evidence:
        while evidence[last + 1].at <= seen.at - before:
            last += 1
        yield last
