"""How many clean answers a judge needs before it can find a canary good enough, by its own formula."""

from collections.abc import Iterator

from domain.judge.evalues import Counts, good_enough
from domain.judge.evidence import LEAST_FOR_A_PERCENTILE
from domain.judge.judged import limits_of
from domain.judge.settings import Errors, Judge, Redirected, Refused, Slow, part, times
from domain.model.canary import BothSides, EValue


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


def _each(settings: Judge, *measures: Errors | Refused | Redirected | Slow | None) -> Iterator[int]:
    limit = limits_of(settings, had_copies=False).good
    for measure in measures:
        if measure is not None:
            yield _clean(measure, limit)


def _clean(measure: Errors | Refused | Redirected | Slow, limit: float) -> int:
    """The fewest answers, all of them clean, by which it is found good; more of them never speak against it."""
    few, many = 0, 1
    while not _is_good(measure, many, limit):
        few, many = many, 2 * many
    while many - few > 1:
        half = (few + many) // 2
        few, many = (few, half) if _is_good(measure, half, limit) else (half, many)
    return many


def _is_good(measure: Errors | Refused | Redirected | Slow, clean: int, limit: float) -> bool:
    here = BothSides(canary=clean, answered=clean)
    found = good_enough(EValue(), Counts(clean, 0, 0, 0), here, times(measure.worse_than), part(measure.allowed))
    return found.highest >= limit
