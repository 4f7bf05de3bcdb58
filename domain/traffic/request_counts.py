"""The requests of callers by their outcome, and the times to their first byte."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add, sub
from typing import Self
from uuid import UUID

from domain.model.answer_counts import FIRST_BYTE_MS, Answers

WAITED_MS = (5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
"""The upper edges of buckets of times to the first byte, in ms: some of `FIRST_BYTE_MS`; one more holds the rest."""
CLASSES = ("2xx", "3xx", "4xx", "failed")
"""The names of `Requests.classes` in metrics."""
NOBODY = UUID(int=0)
"""In place of the revision where no replica was there to answer."""
OTHERS = "(other)"
"""In place of the deployments that have no name in metrics: no deployment is called so."""
Answering = tuple[str, UUID]
"""A deployment, by its name, and the revision of it that answered."""
MOST_NAMED = 100
"""Deployments whose requests have a name in metrics, and whose callers' waits are known: those with the most."""
_FADES = 0.99
_NOBODY_WAITED = (0,) * (len(WAITED_MS) + 1)
_UNTIMED = Answers().first_byte
_EDGES = tuple(FIRST_BYTE_MS.index(edge) + 1 for edge in WAITED_MS)


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests by their outcome. `waited`: the number of requests by the time to their first byte, by `WAITED_MS`.

    `fine`: all but the others. `redirected`: a 3xx other than 304. `refused`: a 4xx. `failed`: a 5xx, a reset, a
    time-out, no connection or no replica.
    """

    fine: int = 0
    redirected: int = 0
    refused: int = 0
    failed: int = 0
    waited: tuple[int, ...] = _NOBODY_WAITED

    @classmethod
    def of(cls, answers: Answers) -> Self:
        if answers.first_byte == _UNTIMED:
            waited = _NOBODY_WAITED
        else:
            ends = zip((0, *_EDGES), (*_EDGES, len(answers.first_byte)), strict=True)
            waited = tuple(sum(answers.first_byte[start:end]) for start, end in ends)
        fine = answers.done - answers.failed - answers.refused - answers.redirected
        return cls(max(0, fine), answers.redirected, answers.refused, answers.failed, waited)

    @classmethod
    def from_row(cls, fine: int, redirected: int, refused: int, failed: int, waited: Sequence[int]) -> Self:
        return cls(fine, redirected, refused, failed, tuple(waited))

    def since(self, before: Self, *, is_timed: bool) -> "Requests":
        """Leave out those that had come `before`; all came since where fewer are counted now."""
        classes = tuple(map(sub, self.classes, before.classes))
        if min(classes) < 0:
            return self if is_timed else Requests(*self.classes)
        fine, redirected, refused, failed = classes
        waited = tuple(map(sub, self.waited, before.waited)) if is_timed else _NOBODY_WAITED
        return Requests(fine, redirected, refused, failed, waited)

    def __add__(self, other: Self) -> "Requests":
        fine, redirected, refused, failed = map(add, self.classes, other.classes)
        return Requests(fine, redirected, refused, failed, tuple(map(add, self.waited, other.waited)))

    @property
    def classes(self) -> tuple[int, int, int, int]:
        return self.fine, self.redirected, self.refused, self.failed

    @property
    def count(self) -> int:
        return sum(self.classes)


NO_REQUESTS = Requests()


def waited_ms(waited: Sequence[int], share: float) -> int | None:
    """The edge in ms within which this share had its first byte; None if unknown or longer."""
    threshold, so_far = share * sum(waited), 0
    for edge, count in zip(WAITED_MS, waited, strict=False):
        so_far += count
        if so_far >= threshold > 0:
            return edge
    return None


@dataclass(frozen=True, slots=True)
class CallersCounted:
    """All that one proxy has counted since it began, `uptime` seconds ago, by deployment and revision."""

    uptime: int
    of: Mapping[Answering, Requests]


@dataclass(frozen=True, slots=True)
class CallersLook:
    """The counts of each proxy that reported, by node id. `timed`: the deployments whose times were read."""

    counted: Mapping[str, CallersCounted]
    timed: frozenset[str]


NO_LOOK = CallersLook({}, frozenset())
Came = Mapping[Answering, Requests]
"""The increase between two looks."""


def came_since(before: CallersLook, now: CallersLook) -> Came:
    """The requests answered between two looks, of proxies that reported at both; without deployments that had none.

    All requests of a restarted proxy came since. Times count where both looks read them.
    """
    came: dict[Answering, Requests] = {}
    timed = before.timed & now.timed
    for node in before.counted.keys() & now.counted.keys():
        earlier = before.counted[node]
        is_same = earlier.uptime <= now.counted[node].uptime
        for of, counts in now.counted[node].of.items():
            its = (earlier.of.get(of) if is_same else None) or NO_REQUESTS
            between = counts.since(its, is_timed=of[0] in timed)
            if between.count:
                came[of] = came.get(of, NO_REQUESTS) + between
    return came


def weighed(weights: Mapping[str, float], came: Came) -> dict[str, float]:
    """The load of each deployment: requests count less with each look, so that the newest count most."""
    faded = {name: weight * _FADES for name, weight in weights.items() if weight * _FADES >= 1}
    for (deployment, _), requests in came.items():
        faded[deployment] = faded.get(deployment, 0) + requests.count
    return faded


def most_asked(weights: Mapping[str, float]) -> frozenset[str]:
    """The deployments with the most requests, up to the number that have a name."""
    return frozenset(sorted(weights, key=lambda name: (-weights[name], name))[:MOST_NAMED])


def losses_in_words(per_second: float, failed_per_second: float, revisions: Sequence[str]) -> str:
    """The requests that failed within the last minute or two, by revision; empty where none did.

    `revisions`: those of the failures; an empty name where no replica was there.
    """
    if not failed_per_second:
        return ""
    by = ", ".join(revision or "no replica was there" for revision in revisions)
    rates = f"{rate(failed_per_second)} of {rate(per_second)} requests/s"
    return f"{rates} failed in the last 2 minutes ({failed_per_second / per_second:.2%}): {by}"


def rate(per_second: float) -> str:
    """Whole numbers from ten on, two digits below."""
    return f"{per_second:.0f}" if per_second >= 10 else f"{per_second:.2g}"  # noqa: PLR2004
