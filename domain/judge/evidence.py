"""The evidence about a canary: each interval is read, and folded into sums."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import NamedTuple

from domain.judge.evalues import Counts, good_enough, harm, harm_at_once
from domain.judge.judge_spec import Errors, Judge, Redirected, Refused, Slow, part, times
from domain.judge.pending_requests import surplus
from domain.model.answer_counts import FIRST_BYTE_MS, NO_COPIES
from domain.model.canary import BothSides, Compared, EValue, Evidence, Exposure, Sums, Waiting
from domain.text.numbers import WHOLE

_TOLD_AFTER = timedelta(seconds=3)
"""The time after which a proxy has counted the first byte of an answer that has ended."""


def never_answered(errors: Errors) -> Slow:
    """The requests that count as unanswered, where slow answers are not judged.

    They wait for 5 s longer than all but one of a thousand answers of the control took.
    """
    return Slow(of="p99.9", by_at_least="5000ms", worse_than=errors.worse_than, warm_up="0s")


def waited(  # noqa: PLR0913  (all of one interval)
    before: Waiting,
    exposure: Exposure,
    evidence: Evidence,
    bucket: int | None,
    highest_share: float,
    slow: Slow,
    *,
    alike: bool = False,
) -> Waiting:
    """Add an interval, which is in `exposure` already; `bucket`: of its percentile.

    q and T are those of the first interval that is judged, and stay. `alike`: q is T, so that the control has waited as
    long as the canary: what is a little later than before is then no matter.

    Nobody counts for how long a request has waited. But of what the canary was sent until T before now, all that was
    not too late has ended, or has been told as late; so the late ones are at least

        sent until then - ended + told as late

    Those of the control are at most what it had under way then, what had ended without a first byte, and what is told
    as late. Let each request that would be late be a factor, θλ/θ0 or (1 - θλ)/(1 - θ0), in the order in which they are
    sent, with the highest share: that is the supermartingale of `harm`. It grows with the late ones of the canary and
    falls with those of the control, so with fewer of those and more of these it stays below, at each moment, whenever
    they come to be known.
    """
    if before.bucket is None:
        return before if bucket is None else Waiting(bucket=bucket, owed=exposure.under_way[1])
    late = first_slow(before.bucket, slow)
    if late > len(FIRST_BYTE_MS):
        return before
    new, old = evidence.canary, evidence.control
    came_late = sum(old.first_byte[late if alike else before.bucket + 1 :])
    new_requests = 0 if bucket is None else new.begun
    open_ones = old.begun - old.done + old.failed - old.cut
    within = max(timedelta(milliseconds=FIRST_BYTE_MS[late - 1]), _TOLD_AFTER)
    pending = (*before.pending, (evidence.at, new_requests, open_ones, came_late))
    now = _until(replace(before, pending=pending), evidence.at - within)
    settled = before.settled + new.done - sum(new.first_byte[late:])
    share = max(before.share, highest_share)
    told_late = now.late + sum(its for *_, its in now.pending)
    canary, control = now.asked - settled, max(0, now.owed) + told_late
    harm = harm_at_once(share, times(slow.worse_than), canary, control) if share and canary > 0 else 0.0
    now = replace(now, settled=settled, share=share)
    return replace(now, highest=harm, canary=canary, control=control) if harm > before.highest else now


def _until(waiting: Waiting, end: datetime) -> Waiting:
    """Move the intervals that had ended by then out of the pending ones."""
    over = [each for each in waiting.pending if each[0] <= end]
    return replace(
        waiting,
        asked=waiting.asked + sum(requests for _, requests, _, _ in over),
        owed=waiting.owed + sum(owed for _, _, owed, _ in over),
        late=waiting.late + sum(late for _, _, _, late in over),
        pending=waiting.pending[len(over) :],
    )


def within_ms(waiting: Waiting, slow: Slow) -> int:
    """The least time that the requests of `waiting.canary` have waited."""
    return FIRST_BYTE_MS[first_slow(waiting.bucket or 0, slow) - 1]


LEAST_FOR_A_PERCENTILE = 100
"""The number of answers of the control that must be known before any answer counts as slow."""
LEAST_FOR_A_SHARE = 40
"""The number of requests of the canary that is enough in a window; where no window has it, all windows count."""
WINDOWS = (1, 2, 4, 8, 16, 32, 64)
"""The number of last intervals, some seconds each, in which a request that fails now was sent."""


class Sent(NamedTuple):
    """The lowest and highest share of the canary in recent requests, and its surplus of pending ones."""

    shares: tuple[float, float]
    surplus: float


def exposed(before: Exposure, evidence: Evidence) -> Exposure:
    """The requests and answers until the end of this interval."""
    canary, control = evidence.canary, evidence.control
    now = Exposure(
        recent=(*before.recent[1 - WINDOWS[-1] :], (canary.begun, control.begun)),
        seconds=(*before.seconds[1 - WINDOWS[-1] :], _seconds(before.at, evidence.at)),
        first_at=before.first_at or evidence.at,
        at=evidence.at,
        under_way=evidence.under_way,
        canary=before.canary + canary.begun,
        control=before.control + control.begun,
        first_byte=tuple(map(int.__add__, before.first_byte, control.first_byte)),
    )
    more = surplus(now)
    return replace(now, surplus=more, surplus_since=(before.surplus_since or evidence.at) if more else None)


def _seconds(begin: datetime | None, end: datetime) -> float:
    return round((end - begin).total_seconds(), 3) if begin and end > begin else 0.0


def sent_requests(exposure: Exposure) -> Sent:
    """The shares of requests at the end of an interval.

    A request that fails in an interval was sent in one of the last 64, so the share is taken in windows of the last 1,
    2, 4 ... 64 intervals, where the canary got enough: with few requests the highest share is luck. It is 0 where a
    side got none.
    """
    return Sent(_shares(exposure.recent[::-1]), exposure.surplus)


def _shares(newest_first: Sequence[tuple[int, int]]) -> tuple[float, float]:
    new, old = ([*accumulate(side)] for side in zip(*newest_first, strict=True))
    windows = [(new[at], old[at]) for at in (min(length, len(new)) - 1 for length in WINDOWS)]
    both = [window for window in windows if all(window)]
    large = [window for window in both if window[0] >= LEAST_FOR_A_SHARE] or both
    shares = [canary / (canary + control) for canary, control in large] or [0.0]
    return min(shares), max(shares)


def failures(evidence: Evidence, requests: Sent) -> Counts:
    """The failed first tries, of all requests: a second try is no better on either side."""
    new, old = evidence.canary, evidence.control
    return Counts(new.begun, new.failed_first, old.begun, old.failed_first, requests.shares, requests.surplus, new.done)


def refusals(evidence: Evidence, requests: Sent) -> Counts:
    """The refusals, of all requests; for the control also its failures, which are no better.

    An equal canary refuses no more often than the control refuses or fails.
    """
    new, old = evidence.canary, evidence.control
    return Counts(
        new.begun, new.refused, old.begun, old.refused + old.failed, requests.shares, requests.surplus, new.done
    )


def redirections(evidence: Evidence, requests: Sent) -> Counts:
    new, old = evidence.canary, evidence.control
    return Counts(new.begun, new.redirected, old.begun, old.redirected, requests.shares, requests.surplus, new.done)


def slow_ones(evidence: Evidence, requests: Sent, bucket: int | None, slow: Slow) -> Counts:
    """The slow answers, of all that began. The limit comes from the intervals before, never from their own.

    With q the control's percentile, in `bucket`, the control is slow beyond q, and the canary beyond
    T = q + `by_at_least`. Take a canary that is later by less: X' <= X + (T - q), or X' <= X · T/q, where X is what the
    control would have taken. Then X' > T only where X > q, so each of all that count as slow is the canary's with its
    share as the highest chance: the null of `harm`, whatever the times are like. Both edges are those of buckets, T's
    the next above.
    """
    if bucket is None:
        return Counts(0, 0, 0, 0)
    canary, control = evidence.canary.first_byte, evidence.control.first_byte
    late = canary[first_slow(bucket, slow) :]
    return Counts(sum(canary), sum(late), sum(control), sum(control[bucket + 1 :]), requests.shares, requests.surplus)


def percentile_of(before: Exposure, evidence: Evidence, began_at: datetime | None, slow: Slow) -> int | None:
    """The bucket that the control's percentile was in before; None where nothing is called slow in this interval."""
    return None if _is_cold(evidence, began_at, slow) else _bucket(before.first_byte, float(slow.of[1:]))


def _is_cold(evidence: Evidence, began_at: datetime | None, slow: Slow) -> bool:
    """Whether the canary, or a replica of it, still has time to warm up."""
    since = max((at for at in (began_at, evidence.youngest_at) if at is not None), default=None)
    return (
        began_at is not None and since is not None and evidence.at < since + timedelta(seconds=float(slow.warm_up[:-1]))
    )


def first_slow(bucket: int, slow: Slow) -> int:
    """The first bucket that is slow for the canary, where the buckets after this one are slow for the control."""
    if bucket == len(FIRST_BYTE_MS):
        return bucket + 1
    return bisect_left(FIRST_BYTE_MS, slow.above(FIRST_BYTE_MS[bucket])) + 1


def _bucket(counts: Sequence[int], percentile: float) -> int | None:
    """The bucket of the control's percentile: answers beyond its upper edge are slow."""
    total, below = sum(counts), 0
    if total < LEAST_FOR_A_PERCENTILE:
        return None
    for place, count in enumerate(counts):
        below += count
        if 100 * below >= percentile * total:
            return place
    return None


def fold_interval(
    before: Sums, evidence: Evidence, settings: Judge | None, since: datetime | None, copied: int = 0
) -> Sums:
    """The sums with a further interval, for a canary whose present weight every live proxy has known `since`.

    `copied`: the part of 10,000 reading requests that is copied to it before its first weight.
    """
    now = _looked(before if before.since == since else at_no_weight(before, since), evidence)
    if settings is None:
        return now
    if settings.errors is not None and copied:
        now = replace(now, copied=_copies(now, evidence, settings.errors, copied))
    its = sent_requests(now.exposure)
    now = replace(
        now,
        failed=_compared(now.failed, failures(evidence, its), settings.errors, is_here=_is_here(now)),
        refused=_compared(now.refused, refusals(evidence, its), settings.refused, is_here=_is_here(now)),
        redirected=_compared(now.redirected, redirections(evidence, its), settings.redirected, is_here=_is_here(now)),
    )
    if settings.errors is not None:
        now = replace(now, unanswered=_unanswered(before, now, evidence, settings.errors, its))
    return now if settings.slow is None else _timed(before, now, evidence, settings.slow, its)


def at_no_weight(sums: Sums, since: datetime | None) -> Sums:
    """The sums without those of the present weight, for a new weight."""
    failed, refused, redirected, slow = (
        replace(its, here=BothSides(), good=EValue()) for its in (sums.failed, sums.refused, sums.redirected, sums.slow)
    )
    fresh = Sums(since=since, failed=failed, refused=refused, redirected=redirected, slow=slow)
    return replace(
        fresh,
        at=sums.at,
        reporting=sums.reporting,
        live=sums.live,
        began_at=sums.began_at,
        exposure=sums.exposure,
        waiting=sums.waiting,
        unanswered=sums.unanswered,
    )


def _looked(before: Sums, evidence: Evidence) -> Sums:
    is_here = before.since is not None and evidence.at > before.since
    return replace(
        before,
        at=evidence.at,
        reporting=evidence.reporting,
        live=evidence.live,
        looks=before.looks + is_here,
        requests=before.requests + evidence.canary.done * is_here,
        copies=before.copies + (evidence.copies if is_here else NO_COPIES),
        old_failed=before.old_failed + evidence.old_failed * is_here,
        began_at=before.began_at or (evidence.at if evidence.canary.is_any else None),
        exposure=exposed(before.exposure, evidence),
    )


def _is_here(now: Sums) -> bool:
    return now.since is not None and now.at is not None and now.at > now.since


def _copies(now: Sums, evidence: Evidence, errors: Errors, copied: int) -> EValue:
    if not _is_here(now):
        return now.copied
    return harm(
        now.copied, Counts(copied, evidence.copies.failed, WHOLE, evidence.old_failed), times(errors.worse_than)
    )


def _compared(
    before: Compared, counts: Counts, settings: Errors | Refused | Redirected | Slow | None, *, is_here: bool
) -> Compared:
    if settings is None:
        return before
    worse_than = times(settings.worse_than)
    now = replace(before, total=counts.added_to(before.total), harm=harm(before.harm, counts, worse_than))
    if not is_here:
        return now
    here = counts.added_to(before.here)
    return replace(now, here=here, good=good_enough(before.good, counts, here, worse_than, part(settings.allowed)))


def _timed(before: Sums, now: Sums, evidence: Evidence, slow: Slow, its: Sent) -> Sums:
    bucket = percentile_of(before.exposure, evidence, now.began_at, slow)
    compared = _compared(now.slow, slow_ones(evidence, its, bucket, slow), slow, is_here=_is_here(now))
    measured_bucket = bucket if now.began_at is not None else None
    return replace(
        now, slow=compared, waiting=waited(now.waiting, now.exposure, evidence, measured_bucket, its.shares[1], slow)
    )


def _unanswered(before: Sums, now: Sums, evidence: Evidence, errors: Errors, its: Sent) -> Waiting:
    rules = never_answered(errors)
    bucket = percentile_of(before.exposure, evidence, now.began_at, rules)
    measured_bucket = bucket if now.began_at is not None else None
    return waited(now.unanswered, now.exposure, evidence, measured_bucket, its.shares[1], rules, alike=True)
