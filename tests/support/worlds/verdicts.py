"""What judges come to who look at a stream of requests all the time: ours, and the rules that others usually have."""

import math
from typing import NamedTuple

import numpy as np

from domain.judge.judge import limits_of, measures
from domain.judge.judge_spec import Judge
from tests.support.worlds.folding import each_folded
from tests.support.worlds.streams import BEFORE, SECONDS, Stream


class Verdict(NamedTuple):
    """What was found first, after so many seconds and requests of the canary."""

    found: str
    seconds: int = 0
    requests: int = 0


def ours(seen: Stream, settings: Judge) -> Verdict:
    """That of looks each second, with all its measures; what comes first counts."""
    evidence = seen.evidence(SECONDS)
    limits, least, requests = limits_of(settings, had_copies=False), BEFORE + settings.at_least.seconds, 0
    looks = each_folded(settings, evidence, since=evidence[BEFORE - 1].at)
    for at, (told, sums) in enumerate(zip(evidence, looks, strict=True), start=1):
        requests += told.canary.begun or 0
        found = list(measures(settings, sums))
        if any(its.harm >= limits.harm for its in found):
            return Verdict("harm", at - BEFORE, requests)
        if at >= least and all(its.good >= limits.good for its in found):
            return Verdict("good", at - BEFORE, requests)
    return Verdict("undecided")


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
