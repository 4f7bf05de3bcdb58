"""What judges come to who look at a stream of requests all the time: ours, and the rules that others usually have."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from domain.judge.evalues import Counts, good_enough, harm
from domain.judge.evidence import failures, refusals, slow_ones
from domain.judge.hanging import hanging
from domain.judge.settings import Errors, Judge, Refused, Slow, part, times
from domain.model.canary import Evidence
from tests.support.worlds.streams import BEFORE, SECONDS, Stream

_NEVER = SECONDS + 1
Seen = TypeVar("Seen")


class Verdict(NamedTuple):
    """What was found first, after so many seconds and requests of the canary."""

    found: str
    seconds: int = 0
    requests: int = 0


def ours(seen: Stream, settings: Judge) -> Verdict:
    """That of looks each second, with all its measures; what comes first counts."""
    verdicts = (_until(seen.evidence(until), settings) for until in (BEFORE + 60, BEFORE + 150, SECONDS))
    return next((verdict for verdict in verdicts if verdict.found != "undecided"), Verdict("undecided"))


def _until(evidence: Sequence[Evidence], settings: Judge) -> Verdict:
    measures = [
        (settings.errors, failures(evidence)),
        (settings.refused, refusals(evidence)),
        (settings.slow, slow_ones(evidence, settings.slow) if settings.slow else []),
    ]
    judged = [(its, counts) for its, counts in measures if its is not None]
    limit = math.log(len(judged) / part(settings.chance_of_false_abort))
    needed = -math.log(part(settings.chance_of_false_promotion))
    harmful, good = _NEVER, BEFORE + int(settings.at_least.seconds)
    for its, counts in judged:
        shown, shown_good = _harm(its), _good(its)
        harmful = min(harmful, _first(counts, shown, limit + (math.log(2) if isinstance(its, Slow) else 0)))
        good = max(good, BEFORE + _first(counts[BEFORE:], shown_good, needed))
    if settings.slow is not None:
        slow = settings.slow
        harmful = min(harmful, _first(evidence, lambda seen: hanging(seen, slow).shown, limit + math.log(2)))
    at = min(harmful, good)
    if at > len(evidence):
        return Verdict("undecided")
    requests = sum(seen.canary.begun or 0 for seen in evidence[:at])
    return Verdict("harm" if harmful <= good else "good", at - BEFORE, requests)


def _harm(its: Errors | Refused | Slow) -> Callable[[Sequence[Counts]], float]:
    return lambda counts: harm(counts, times(its.worse_than))


def _good(its: Errors | Refused | Slow) -> Callable[[Sequence[Counts]], float]:
    return lambda counts: good_enough(counts, times(its.worse_than), part(its.allowed))


def _first(looks: Sequence[Seen], shown: Callable[[Sequence[Seen]], float], limit: float) -> int:
    """After how many looks so much is shown; it only grows."""
    if shown(looks) < limit:
        return _NEVER
    low, high = 0, len(looks)  # of looks[:low] too little is shown, of looks[:high] enough
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if shown(looks[:middle]) >= limit else (middle, high)
    return high


def by_minute(seen: Stream, most_failed: float, bad_minutes: int, slowest: float = math.inf) -> Verdict:
    """Minute by minute: bad where more of the canary's failed, or one of a hundred began later; so many end it."""
    bad = 0
    for until in range(BEFORE + 60, SECONDS + 1, 60):
        which = seen.is_canary & (seen.ends >= until - 60) & (seen.ends < until)
        if not which.any():
            continue
        late = np.quantile(np.where(np.isinf(seen.first_byte), 3.0, seen.first_byte)[which], 0.99) > slowest
        bad += bool(seen.failed[which].mean() > most_failed or late)
        if bad >= bad_minutes:
            return Verdict("harm", until - BEFORE, int((seen.is_canary & (seen.begins < until)).sum()))
    return Verdict("good", SECONDS - BEFORE, int(seen.is_canary.sum()))
