"""The waits of a step while replicas are on their way, with every inequality that holds it.

room       3 live + 1 stopping + 1 > 4     one more would pass the ceiling
floor      2 serving - 1 < 2 to keep       one less would pass the floor
wave       1 not ready > 0 in this wave    the next wave begins when the last one is ready
count      2 ready < 3 wanted              it is not complete
stopping   1 stopping > 0                  nothing continues before it is gone
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.model.decision import Inequality, Waits, WaitsFor, too_short
from domain.model.deployment import Rollout, Route
from domain.strategies.budget import Buckets, Budget
from domain.text.numbers import all_of


def for_replicas(  # noqa: PLR0913  (all that the inequalities are made of)
    words: str, buckets: Buckets, budget: Budget, now: datetime, *, min_ready: float = 0, wave: bool = False
) -> Waits:
    """Wait for starting replicas first, then for warming ones, sick ones, and those that take up room."""
    routes = buckets.starting or buckets.warming or buckets.sick or _in_the_way(buckets, budget)
    blocked = Incomplete(buckets, budget, now, min_ready, wave)
    warm = min_ready if routes and routes is buckets.warming else None
    return Waits(WaitsFor.ROUTE if routes else WaitsFor.TIME, words, routes, blocked, warm)


def for_stopping(words: str, routes: tuple[Route, ...]) -> Waits:
    """Wait until all of these are gone."""
    return Waits(WaitsFor.ROUTE, words, routes, (_stopping(len(routes)),))


def _in_the_way(buckets: Buckets, budget: Budget) -> tuple[Route, ...]:
    stopping = (*buckets.foreign_stopping, *buckets.stopping)
    return stopping if budget.count_stopping or budget.alone else ()


@dataclass(slots=True)  # frozen, it takes four times as long to make
class Incomplete:
    """The inequalities that keep replicas from being complete, computed when they are read."""

    buckets: Buckets
    budget: Budget
    at: datetime
    min_ready: float
    wave: bool

    def __iter__(self) -> Iterator[Inequality]:
        return _inequalities(self.buckets, self.budget, self.at, self.min_ready, wave=self.wave)


def _inequalities(
    buckets: Buckets, budget: Budget, now: datetime, min_ready: float, *, wave: bool
) -> Iterator[Inequality]:
    ready, coming = len(buckets.ready), len(buckets.starting) + len(buckets.warming)
    if not buckets.starting and buckets.warming:
        newest = max(route.status_changed_at for route in buckets.warming)
        yield too_short(now - newest, timedelta(seconds=min_ready), "in health")
    if coming and wave:
        yield Inequality(coming, ">", 0, f"{coming} not ready > 0 in this wave")
    if budget.alone and buckets.foreign_stopping:
        yield _stopping(len(buckets.foreign_stopping))
    if ready < budget.desired:
        yield Inequality(ready, "<", budget.desired, f"{ready} ready < {budget.desired} wanted")
        if buckets.room(budget) == 0 and budget.ceiling >= budget.desired:  # else it is what another side leaves it
            occupied = buckets.occupied(budget)
            yield Inequality(buckets.used_places(budget) + 1, ">", budget.ceiling, f"{occupied} + 1 > {budget.ceiling}")
    if buckets.foreign:
        serving = sum([route.is_serving for side in (buckets.target, buckets.foreign) for route in side])
        if serving - 1 < budget.keep:
            yield Inequality(serving - 1, "<", budget.keep, f"{serving} serving - 1 < {budget.keep} to keep")


def _stopping(count: int) -> Inequality:
    return Inequality(count, ">", 0, f"{count} stopping > 0")


def steps(*parts: str) -> str:
    """The parts that are not empty, as one sentence."""
    return ", ".join(part for part in parts if part)


def amount_of(verb: str, count: int, what: str = "") -> str:
    """E.g. "draining 2 green"; empty for none."""
    return f"{verb} {count}{what and ' '}{what}" if count else ""


def complete(count: int, rollout: Rollout | None) -> str:
    """The revision has taken over; that of an undo is an earlier one."""
    which = "earlier" if rollout and rollout.is_undo else "new"
    return f"{all_of(count, 'replica')} {'runs' if count == 1 else 'run'} the {which} revision"


def creating(count: int, buckets: Buckets, budget: Budget, what: str = "") -> str:
    """E.g. "creating 1 new (2 live + 1 stopping + 1 ≤ 4)"; empty for none."""
    inequality = f" ({buckets.occupied(budget)} + {count} ≤ {budget.ceiling})"
    return amount_of("creating", count, what) + inequality if count else ""


def draining(count: int, budget: Budget) -> str:
    """E.g. "draining 1 (at least 2 of 3 stay)"; empty for none."""
    return f"draining {count} (at least {budget.keep} of {budget.desired} stay)" if count else ""
