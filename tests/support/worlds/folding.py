"""Evidence folded as it comes in, for judges to be tried."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate, pairwise

from domain.judge.evalues import Counts, good_enough, harm
from domain.judge.evidence import exposed, failures, fold_interval, percentile_of, sent_requests, slow_ones
from domain.judge.judge_spec import Judge, Slow
from domain.model.canary import NOTHING_SEEN, BothSides, EValue, Evidence, Exposure, Sums


def each_folded(
    settings: Judge | None, told: Iterable[Evidence], since: datetime | None = None, copied: int = 0
) -> Iterator[Sums]:
    """The sums after each interval. A weight that is known `since` is one for all of them."""
    sums = accumulate(told, lambda sums, its: fold_interval(sums, its, settings, since, copied), initial=NOTHING_SEEN)
    next(sums)
    return sums


def folded(settings: Judge | None, told: Iterable[Evidence], since: datetime | None = None, copied: int = 0) -> Sums:
    """The sums after all intervals."""
    *_, found = NOTHING_SEEN, *each_folded(settings, told, since, copied)
    return found


def harm_of(counts: Iterable[Counts], worse_than: float) -> float:
    """The log e-value of all intervals, at its highest."""
    shown = EValue()
    for its in counts:
        shown = harm(shown, its, worse_than)
    return shown.highest


def good_of(counts: Iterable[Counts], worse_than: float, allowed: float) -> float:
    """The log e-value of all intervals, at its highest."""
    shown, here = EValue(), BothSides()
    for its in counts:
        here = its.added_to(here)
        shown = good_enough(shown, its, here, worse_than, allowed)
    return shown.highest


def failures_of(evidence: Sequence[Evidence]) -> list[Counts]:
    """The failures of each interval."""
    exposures = accumulate(evidence, exposed, initial=Exposure())
    return [failures(told, sent_requests(now)) for told, (_, now) in zip(evidence, pairwise(exposures), strict=True)]


def slow_of(evidence: Sequence[Evidence], slow: Slow) -> list[Counts]:
    """The slow answers of each interval."""
    exposures = list(pairwise(accumulate(evidence, exposed, initial=Exposure())))
    began_at, found = None, []
    for told, (before, now) in zip(evidence, exposures, strict=True):
        began_at = began_at or (told.at if told.canary.is_any else None)
        found.append(slow_ones(told, sent_requests(now), percentile_of(before, told, began_at, slow), slow))
    return found
