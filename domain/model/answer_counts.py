"""The answers of revisions, as proxies count them, their increase between two looks, and whether nobody is answered."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import add, sub
from typing import Self
from uuid import UUID

from domain.text.numbers import duration, number_of

_A_DECADE = (10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 40, 45, 50, 55, 60, 65, 70, 75, 82, 90)
FIRST_BYTE_MS: tuple[int, ...] = (
    *range(1, 10),
    *(tens * edge for tens in (1, 10, 100, 1_000) for edge in _A_DECADE),
    *(100_000, 120_000, 150_000, 200_000, 300_000),
)
"""The upper edges of the buckets of times to the first byte, in ms; one more bucket holds what took longer.

Each is at most an eighth above the one before, and two digits, as an Envoy keeps times: its counts are exact there.
"""
_NOBODY_WAITED = (0,) * (len(FIRST_BYTE_MS) + 1)


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers of one revision. `failed`: of those done, the ones with a 5xx, a reset, a time-out or no connection.

    `first_byte`: how many took how long to their first byte, by `FIRST_BYTE_MS`; proxies add it up to two seconds
    later. An answer that never began is in none. `cut`: of those failed, the ones that had begun. `begun`: requests
    sent, answered or not. `refused`: of those done, the ones with a 4xx. `again`: of those done, the ones that
    were sent to another replica too, since the first one failed, or let them wait for too long; `again_failed`: of
    these, the ones that failed in the end. `redirected`: of those done, the ones with a 3xx other than 304.
    """

    done: int = 0
    failed: int = 0
    first_byte: tuple[int, ...] = _NOBODY_WAITED
    cut: int = 0
    begun: int = 0
    refused: int = 0
    again: int = 0
    again_failed: int = 0
    redirected: int = 0

    def __add__(self, other: Self) -> "Answers":
        return self._each(other, add)

    def __sub__(self, other: Self) -> "Answers":
        return self._each(other, sub)

    def _each(self, other: Self, put: Callable[[int, int], int]) -> "Answers":
        first_byte = tuple(map(put, self.first_byte, other.first_byte))
        done, failed, cut = put(self.done, other.done), put(self.failed, other.failed), put(self.cut, other.cut)
        begun, refused = put(self.begun, other.begun), put(self.refused, other.refused)
        again = put(self.again, other.again), put(self.again_failed, other.again_failed)
        return Answers(done, failed, first_byte, cut, begun, refused, *again, put(self.redirected, other.redirected))

    @property
    def failed_first(self) -> int:
        """The number of first tries that failed, whatever became of the request."""
        return self.failed + self.mended

    @property
    def mended(self) -> int:
        """The number of first tries that failed where another replica answered in the end."""
        return self.again - self.again_failed

    @property
    def is_any(self) -> bool:
        return any((self.done, self.begun, *self.first_byte))

    @property
    def is_possible(self) -> bool:
        """Whether no count is below 0."""
        counts = self.done, self.failed, self.cut, self.begun, self.refused, self.again, self.again_failed
        return min(*counts, self.redirected, *self.first_byte) >= 0


@dataclass(frozen=True, slots=True)
class Copies:
    """Answers of a canary to copies of requests. `failed`: those with a 5xx other than 503.

    A copy is sent once, and 503 is what a proxy says where a replica does not answer: an original is sent again then.
    """

    done: int = 0
    failed: int = 0

    def __add__(self, other: Self) -> "Copies":
        return Copies(self.done + other.done, self.failed + other.failed)

    def since(self, before: "Copies") -> "Copies":
        """The answers that came after; where fewer are counted, all did: the counters of a mirror go with it."""
        if self.done < before.done or self.failed < before.failed:
            return self
        return Copies(self.done - before.done, self.failed - before.failed)


NO_COPIES = Copies()


@dataclass(frozen=True, slots=True)
class Counters:
    """The counters of one proxy since it began, `uptime` seconds ago, of each revision.

    `refused`: requests that it answered itself, for there was no replica. `under_way`: requests, whenever they came.
    """

    uptime: int
    of: Mapping[UUID, Answers]
    refused: int = 0
    copies: Copies = NO_COPIES
    under_way: Mapping[UUID, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Interval:
    """The answers between two looks at all proxies, by revision id. `id`: 1, 2, ... of its rollout; `at`: its end.

    What a fresh baseline answered is counted for the old revision, and once more under the id of the rollout.
    `reporting`: the proxies that told what they counted, of those that are `live`: what the others did is not known.
    `refused`: requests that proxies answered themselves, for there was no replica. `under_way`: at its end, where a
    canary has a weight.
    """

    id: int
    at: datetime
    seconds: float
    of: Mapping[UUID, Answers]
    reporting: int
    live: int
    refused: int = 0
    copies: Copies = NO_COPIES
    under_way: Mapping[UUID, int] = field(default_factory=dict)


def counted_since(before: Counters | None, now: Counters) -> Counters:
    """A proxy's counts between two looks. The first look counts nothing: its values are from before.

    Restarted counters begin at 0: where one has fallen, or the proxy is younger, all of `now` came since.
    """
    if before is None:
        return Counters(now.uptime, {})
    between = {revision: answers - before.of.get(revision, Answers()) for revision, answers in now.of.items()}
    refused = now.refused - before.refused
    is_same = now.uptime >= before.uptime and refused >= 0 and before.of.keys() <= now.of.keys()
    if is_same and all(answers.is_possible for answers in between.values()):
        return Counters(now.uptime, between, refused, now.copies.since(before.copies))
    return now


def together(parts: Iterable[Counters]) -> tuple[Mapping[UUID, Answers], int]:
    """The sums of several proxies: answers by revision, without revisions that had none, and refusals."""
    sums: dict[UUID, Answers] = {}
    refused = 0
    for part in parts:
        refused += part.refused
        for revision, answers in part.of.items():
            sums[revision] = sums.get(revision, Answers()) + answers
    return {revision: answers for revision, answers in sums.items() if answers.is_any}, refused


@dataclass(frozen=True, slots=True)
class Look:
    """The counters of the proxies that reported at one moment, by node id, and the number of live ones."""

    at: datetime
    counters: Mapping[str, Counters]
    live: int


def next_interval(last: tuple[int, datetime], before: Mapping[str, Counters], look: Look) -> Interval:
    """The interval between two looks. `last`: id and end of the one before, or 0 and when the rollout began.

    `before`: the counters that each proxy showed when it told last; one that missed looks tells of all that time.
    """
    number, since = last
    parts = [counted_since(before.get(node), counters) for node, counters in look.counters.items()]
    of, refused = together(parts)
    seconds = max(0.0, (look.at - since).total_seconds())
    copies = sum((part.copies for part in parts), Copies())
    under_way = sum((Counter(counters.under_way) for counters in look.counters.values()), Counter[UUID]())
    return Interval(number + 1, look.at, seconds, of, len(parts), look.live, refused, copies, under_way)


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
    """Whether the old revision fails as much: in first tries since the new one got requests, else in all."""
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
