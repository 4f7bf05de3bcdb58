"""Whether a new revision answers nobody, by the proxies' counts: a limit of every rollout, judged or not."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from domain.model.answer_counts import FIRST_BYTE_MS, Answers, Interval
from domain.text.numbers import duration, number_of

LONGEST = 2
"""A request is unanswered after this multiple of the longest time to a first byte of the old revision."""
SHORTEST = timedelta(seconds=5)
"""The least time before a request is unanswered, however quick the old revision is."""
FIRST_BYTES_LATE = timedelta(seconds=3)
EXCUSED = 0.001
"""The chance above which a row of failures may be the old revision's, since that fails as often."""


def unanswered(intervals: Sequence[Interval], old: UUID, new: UUID) -> int | None:
    """Count requests to `new` without an answer; None once it has answered one.

    Those that failed count at once. Those under way count where the old revision answers: after `LONGEST` times as long
    as the slowest of its answers took. An answer that has begun is one; a 5xx is none.

    Where the old revision fails as well, or who asks leaves both at once, none counts: that is no fault of the new one.

    Proxies add first bytes up to two seconds late, so in the beginning some are of answers from before the first look.
    """
    count = _unanswered_count(intervals, old, new)
    return 0 if count and _are_excused(count, intervals, old, new) else count


def not_proven(new: str, count: int, limit: int, remaining: timedelta | None) -> str:
    """The sentence that `new` has answered nobody yet.

    `remaining`: the time for which it is still counted; None: without an end.
    """
    so_far = f"none of {number_of(count, 'request')}" if count else "nobody"
    suffix = f", counted for {duration(max(timedelta(), remaining))} more" if remaining is not None else ""
    return f"not proven yet: {new} has answered {so_far}, and goes back at {limit}{suffix}"


def _unanswered_count(intervals: Sequence[Interval], old: UUID, new: UUID) -> int | None:
    new_answers, late = (
        _answers_since(intervals, new, since) for since in (intervals[0].at, intervals[0].at + FIRST_BYTES_LATE)
    )
    if new_answers.done > new_answers.failed_first or sum(late.first_byte) > new_answers.done:
        return None
    patience = _patience(_answers_since(intervals, old, intervals[0].at))
    if patience is None:
        return new_answers.failed_first
    sent_by = intervals[-1].at - patience
    sent_count = sum(interval.of[new].begun for interval in intervals if new in interval.of and interval.at <= sent_by)
    return new_answers.failed_first + max(0, sent_count - max(new_answers.done, sum(new_answers.first_byte)))


def _are_excused(count: int, intervals: Sequence[Interval], old: UUID, new: UUID) -> bool:
    """By the old revision's first tries since the new one got requests; by all, if it has had none since."""
    since = next((interval.at for interval in intervals if new in interval.of), intervals[0].at)
    recent, ever = (_answers_since(intervals, old, at) for at in (since, intervals[0].at))
    met = recent if recent.done else ever
    # one more of each kind: few answers are no certainty
    return bool(met.done) and ((met.failed_first + 1) / (met.done + 2)) ** count > EXCUSED


def _answers_since(intervals: Sequence[Interval], revision: UUID, since: datetime) -> Answers:
    return sum((interval.of.get(revision, Answers()) for interval in intervals if interval.at >= since), Answers())


def _patience(answers: Answers) -> timedelta | None:
    slowest = max((place for place, count in enumerate(answers.first_byte) if count), default=None)
    if slowest is None or slowest == len(FIRST_BYTE_MS):
        return None
    return max(SHORTEST, LONGEST * timedelta(milliseconds=FIRST_BYTE_MS[slowest]))
