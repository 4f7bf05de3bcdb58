"""Requests that wait for longer than a slow answer takes: slow or failed before their first byte comes, if it does."""

from dataclasses import replace
from datetime import datetime, timedelta

from domain.judge.evalues import harm_at_once
from domain.judge.evidence import first_slow
from domain.judge.settings import Errors, Slow, times
from domain.model.answers import FIRST_BYTE_MS
from domain.model.canary import Evidence, Exposure, Waiting

_TOLD_AFTER = timedelta(seconds=3)
"""By then the first byte of what has ended is in the counts of its proxy."""


def never_answered(errors: Errors) -> Slow:
    """Say which requests are taken for such that nobody answers, where slow answers are not judged.

    They wait for 5 s longer than all but one of a thousand answers of the control took.
    """
    return Slow(of="p99.9", by_at_least="5000ms", worse_than=errors.worse_than, warm_up="0s")


def waited(  # noqa: PLR0913  (all of one interval)
    before: Waiting,
    exposure: Exposure,
    told: Evidence,
    bucket: int | None,
    highest_share: float,
    slow: Slow,
    *,
    alike: bool = False,
) -> Waiting:
    """One interval on; `exposure` has it, and `bucket` is that of its percentile.

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
    new, old = told.canary, told.control
    came_late = sum(old.first_byte[late if alike else before.bucket + 1 :])
    asked = 0 if bucket is None else new.begun
    open_ones = old.begun - old.done + old.failed - old.cut
    within = max(timedelta(milliseconds=FIRST_BYTE_MS[late - 1]), _TOLD_AFTER)
    pending = (*before.pending, (told.at, asked, open_ones, came_late))
    now = _until(replace(before, pending=pending), told.at - within)
    settled = before.settled + new.done - sum(new.first_byte[late:])
    share = max(before.share, highest_share)
    told_late = now.late + sum(its for *_, its in now.pending)
    canary, control = now.asked - settled, max(0, now.owed) + told_late
    shown = harm_at_once(share, times(slow.worse_than), canary, control) if share and canary > 0 else 0.0
    now = replace(now, settled=settled, share=share)
    return replace(now, highest=shown, canary=canary, control=control) if shown > before.highest else now


def _until(waiting: Waiting, end: datetime) -> Waiting:
    """With the intervals that had ended by then no longer pending."""
    over = [each for each in waiting.pending if each[0] <= end]
    return replace(
        waiting,
        asked=waiting.asked + sum(asked for _, asked, _, _ in over),
        owed=waiting.owed + sum(owed for _, _, owed, _ in over),
        late=waiting.late + sum(late for _, _, _, late in over),
        pending=waiting.pending[len(over) :],
    )


def within_ms(waiting: Waiting, slow: Slow) -> int:
    """For so long at least those of `waiting.canary` waited."""
    return FIRST_BYTE_MS[first_slow(waiting.bucket or 0, slow) - 1]
