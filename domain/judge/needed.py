"""How many clean answers a judge needs before it can find a canary good enough, by its own formula."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from domain.judge.evalues import Counts, good_enough
from domain.judge.evidence import LEAST_FOR_A_PERCENTILE
from domain.judge.judged import limits_of
from domain.judge.settings import Errors, Judge, Redirected, Refused, Slow, part, times
from domain.model.canary import Compared, Sums
from domain.words.numbers import duration

_Rules = Errors | Refused | Redirected | Slow


def needed(settings: Judge) -> str:
    """Say it of all measures together, and of slow answers with what is called slow."""
    measures = (settings.errors, settings.refused, settings.redirected, settings.slow)
    requests = max(settings.at_least.requests, *_each(settings, *measures))
    said = f"it needs {requests:,} answers of the canary at each weight, if none fails on either side"
    if settings.slow is None:
        return said
    (slow,), its = _each(settings, settings.slow), settings.slow
    return (
        f"{said}; {slow:,} that are not slow, which is later by {its.by_at_least} than {its.of} of the control, "
        f"known from {LEAST_FOR_A_PERCENTILE} of its answers on"
    )


def still_needed(settings: Judge, sums: Sums, since: datetime, now: datetime) -> str:
    """Say how many answers more find it good, if all are well, and how long that takes at this rate; empty for none.

    What is under way beyond its share is taken to stay so.

    about 240 answers more, if all are well, some 4 min at this rate
    """
    limit = limits_of(settings, had_copies=False).good
    more = max(
        (
            _more(its, rules, limit, sums.exposure.surplus)
            for its, rules in (
                (sums.failed, settings.errors),
                (sums.refused, settings.refused),
                (sums.redirected, settings.redirected),
                (sums.slow, settings.slow),
            )
            if rules is not None and its.good.highest < limit
        ),
        default=0,
    )
    if not more or sums.since != since:
        return ""
    said = f"about {more:,} answers more, if all are well"
    seconds = (now - since).total_seconds()
    return (
        f"{said}, some {duration(more / sums.requests * (now - since))} at this rate"
        if sums.requests and seconds
        else said
    )


def _more(its: Compared, rules: _Rules, limit: float, surplus: float = 0.0) -> int:
    def is_good(clean: int) -> bool:
        here = replace(its.here, canary=its.here.canary + clean, answered=its.here.answered + clean)
        counts = Counts(clean, 0, its.here.control, 0, waiting=surplus)
        found = good_enough(its.good, counts, here, times(rules.worse_than), part(rules.allowed))
        return found.highest >= limit

    return _fewest(is_good)


def _each(settings: Judge, *measures: _Rules | None) -> Iterator[int]:
    limit = limits_of(settings, had_copies=False).good
    for measure in measures:
        if measure is not None:
            yield _more(Compared(), measure, limit)


def _fewest(is_good: Callable[[int], bool]) -> int:
    """The fewest answers, all of them clean, by which it is found good; more of them never speak against it."""
    few, many = 0, 1
    while not is_good(many):
        few, many = many, 2 * many
    while many - few > 1:
        half = (few + many) // 2
        few, many = (few, half) if is_good(half) else (half, many)
    return many
