"""Requests of six minutes to a canary and its control, as proxies tell of them each second, for judges to be tried."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from domain.model.answer_counts import FIRST_BYTE_MS, Answers
from domain.model.canary import Evidence

SECONDS, A_SECOND, WEIGHT, BEFORE = 420, 50, 0.1, 60
"""The canary gets its weight after `BEFORE` seconds."""
LONG_BEFORE = 120
"""So many seconds before the first look the first request came: what was sent then is under way."""
_BEGAN = datetime(2026, 3, 2, tzinfo=UTC)
_BUCKETS = len(FIRST_BYTE_MS) + 1


@dataclass(frozen=True, slots=True)
class Side:
    """What a revision does with its requests. Times in seconds.

    It answers after `median` · e^(`spread` · z), `times` as late, and `later` by so much; failures come at once.
    `hangs`: the share that is never answered, and left by its callers. `cold`: for so long it answers 0.3 s later.
    `again`: the share whose first try is reset at once, and which another replica answers.
    """

    fails: float = 0.001
    refuses: float = 0.0
    median: float = 0.02
    spread: float = 0.3
    times: float = 1.0
    later: float = 0.0
    hangs: float = 0.0
    cold: float = 0.0
    again: float = 0.0
    redirects: float = 0.0


@dataclass(frozen=True, slots=True)
class Stream:
    """Each request by its beginning, and its end; `first_byte` in seconds, without end where there was none."""

    begins: np.ndarray
    ends: np.ndarray
    is_canary: np.ndarray
    failed: np.ndarray
    refused: np.ndarray
    again: np.ndarray
    first_byte: np.ndarray
    redirected: np.ndarray

    def evidence(self, until: int = SECONDS) -> list[Evidence]:
        """What proxies tell each second; the canary has its weight after a minute."""
        sides = (self.is_canary, ~self.is_canary)
        new, old = (_told(self, side, until) for side in sides)
        under_way = zip(*(_under_way(self, side, until) for side in sides), strict=True)
        return [
            Evidence(_BEGAN + timedelta(seconds=at), its, others, 1, 1, under_way=busy)
            for at, (its, others, busy) in enumerate(zip(new, old, under_way, strict=True), start=1)
        ]


def stream(
    chance: np.random.Generator, canary: Side, control: Side, *, bursts: bool = False, patience: float = 3.0
) -> Stream:
    """`bursts`: in one of fifty seconds three requests of ten fail, whoever answers."""
    count = chance.poisson(A_SECOND * (LONG_BEFORE + SECONDS))
    begins = np.sort(chance.random(count) * (LONG_BEFORE + SECONDS)) - LONG_BEFORE
    is_canary = (chance.random(count) < WEIGHT) & (begins >= BEFORE)

    def of(name: str) -> np.ndarray:
        new, old = (float(getattr(side, name)) for side in (canary, control))
        return np.where(is_canary, new, old)

    rates = of("fails")
    if bursts:
        rates = np.where((chance.random(LONG_BEFORE + SECONDS) < 0.02)[begins.astype(int)], 0.3, rates)
    fate = chance.random(count)
    failed, hangs = fate < rates, chance.random(count) < of("hangs")
    refused = ~failed & ~hangs & (fate < rates + of("refuses"))
    redirected = ~failed & ~hangs & ~refused & (fate < rates + of("refuses") + of("redirects"))
    again = ~failed & ~hangs & (chance.random(count) < of("again"))
    takes = of("median") * np.exp(of("spread") * chance.standard_normal(count)) * of("times") + of("later")
    takes += np.where(begins < np.where(of("cold") > 0, BEFORE + of("cold"), 0), 0.3, 0.0)
    takes = np.where(failed, 0.001, takes)
    ends = begins + np.where(hangs, patience, takes)
    first_byte = np.where(hangs, np.inf, takes)
    return Stream(begins, ends, is_canary, failed | hangs, refused, again, first_byte, redirected)


def _told(seen: Stream, side: np.ndarray, until: int) -> list[Answers]:
    done = (seen.ends >= 0) & (seen.ends < until)
    bucket = np.searchsorted(FIRST_BYTE_MS, np.floor(np.where(np.isinf(seen.first_byte), 0, seen.first_byte) * 1000))
    begun, ended, failed, refused, again, redirected = (
        np.bincount(times[which].astype(int), minlength=until)[:until].tolist()
        for times, which in (
            (seen.begins, side & (seen.begins >= 0) & (seen.begins < until)),
            (seen.ends, side & done),
            (seen.ends, side & done & seen.failed),
            (seen.ends, side & done & seen.refused),
            (seen.ends, side & done & seen.again),
            (seen.ends, side & done & seen.redirected),
        )
    )
    which = side & done & ~np.isinf(seen.first_byte)
    cells = seen.ends[which].astype(int) * _BUCKETS + bucket[which]
    first_byte = np.bincount(cells, minlength=until * _BUCKETS).reshape(until, _BUCKETS).tolist()
    return [
        Answers(ended[at], failed[at], tuple(first_byte[at]), 0, begun[at], refused[at], again[at], 0, redirected[at])
        for at in range(until)
    ]


def _under_way(seen: Stream, side: np.ndarray, until: int) -> list[int]:
    """At the end of each second."""
    first, last = (np.clip(np.ceil(times[side]).astype(int), 1, until + 1) for times in (seen.begins, seen.ends))
    changes = np.bincount(first, minlength=until + 2) - np.bincount(last, minlength=until + 2)
    return [int(count) for count in np.cumsum(changes)[1 : until + 1]]
