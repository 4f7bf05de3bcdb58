"""Evidence folded as it comes: each interval makes new sums of those before, and nothing is read twice."""

from dataclasses import replace
from datetime import datetime

from domain.judge.evalues import Counts, good_enough, harm
from domain.judge.evidence import Sent, exposed, failures, percentile_of, redirections, refusals, sent, slow_ones
from domain.judge.hanging import never_answered, waited
from domain.judge.settings import Errors, Judge, Redirected, Refused, Slow, part, times
from domain.model.answers import NO_COPIES
from domain.model.canary import BothSides, Compared, EValue, Evidence, Sums, Waiting
from domain.words.numbers import WHOLE


def seen(before: Sums, told: Evidence, settings: Judge | None, since: datetime | None, copied: int = 0) -> Sums:
    """The sums with one interval more, of a canary whose present weight every live proxy has known `since`.

    `copied`: so many of 10,000 requests that only read are copied to it before its first weight.
    """
    now = _looked(before if before.since == since else at_no_weight(before, since), told)
    if settings is None:
        return now
    if settings.errors is not None and copied:
        now = replace(now, copied=_copies(now, told, settings.errors, copied))
    its = sent(now.exposure)
    now = replace(
        now,
        failed=_compared(now.failed, failures(told, its), settings.errors, is_here=_is_here(now)),
        refused=_compared(now.refused, refusals(told, its), settings.refused, is_here=_is_here(now)),
        redirected=_compared(now.redirected, redirections(told, its), settings.redirected, is_here=_is_here(now)),
    )
    if settings.errors is not None:
        now = replace(now, unanswered=_unanswered(before, now, told, settings.errors, its))
    return now if settings.slow is None else _timed(before, now, told, settings.slow, its)


def at_no_weight(sums: Sums, since: datetime | None) -> Sums:
    """The sums without what is of the present weight: nothing has been seen at another one."""
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


def _looked(before: Sums, told: Evidence) -> Sums:
    is_here = before.since is not None and told.at > before.since
    return replace(
        before,
        at=told.at,
        reporting=told.reporting,
        live=told.live,
        looks=before.looks + is_here,
        requests=before.requests + told.canary.done * is_here,
        copies=before.copies + (told.copies if is_here else NO_COPIES),
        old_failed=before.old_failed + told.old_failed * is_here,
        began_at=before.began_at or (told.at if told.canary.is_any else None),
        exposure=exposed(before.exposure, told),
    )


def _is_here(now: Sums) -> bool:
    return now.since is not None and now.at is not None and now.at > now.since


def _copies(now: Sums, told: Evidence, errors: Errors, copied: int) -> EValue:
    if not _is_here(now):
        return now.copied
    return harm(now.copied, Counts(copied, told.copies.failed, WHOLE, told.old_failed), times(errors.worse_than))


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


def _timed(before: Sums, now: Sums, told: Evidence, slow: Slow, its: Sent) -> Sums:
    bucket = percentile_of(before.exposure, told, now.began_at, slow)
    compared = _compared(now.slow, slow_ones(told, its, bucket, slow), slow, is_here=_is_here(now))
    asked = bucket if now.began_at is not None else None
    return replace(now, slow=compared, waiting=waited(now.waiting, now.exposure, told, asked, its.shares[1], slow))


def _unanswered(before: Sums, now: Sums, told: Evidence, errors: Errors, its: Sent) -> Waiting:
    rules = never_answered(errors)
    bucket = percentile_of(before.exposure, told, now.began_at, rules)
    asked = bucket if now.began_at is not None else None
    return waited(now.unanswered, now.exposure, told, asked, its.shares[1], rules, alike=True)
