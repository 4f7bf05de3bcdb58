"""Budgets and buckets: how far a deployment may go above and below its desired count, and its routes, sorted.

n = desired, s = max_surge, u = max_unavailable; each a number or a percent of n.

    n=4  s=25%  u=25%   ceiling 5, keep 3
    n=10 s=25%  u=25%   ceiling 13 (s rounds up), keep 8 (u rounds down)
    n=1  s=0%   u=25%   both are 0, so u = 1: ceiling 1, keep 0
    n=2  s=1    u=2     ceiling 3, keep 1: the last one serves until another does, wherever there is room for that
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from operator import attrgetter
from typing import Annotated, Self
from uuid import UUID

from pydantic import BeforeValidator, Field

from domain.model.deployment import Route
from domain.model.states import INACTIVE, RouteStatus, TrafficStatus

_HIGHEST_PERCENT = 1000
_HIGHEST_NUMBER = 10_000
_PERCENT = re.compile(r"[0-9]{1,4}%")


def _check_amount(value: object) -> object:
    match value:
        case bool():
            pass
        case int() if 0 <= value <= _HIGHEST_NUMBER:
            return value
        case str() if _PERCENT.fullmatch(value) and int(value[:-1]) <= _HIGHEST_PERCENT:
            return value
    raise ValueError(
        f"must be a whole number of replicas from 0 to {_HIGHEST_NUMBER}, "
        f'or a whole percent from "0%" to "{_HIGHEST_PERCENT}%"'
    )


Amount = Annotated[
    int | str,
    BeforeValidator(_check_amount),
    Field(description=f'0 to {_HIGHEST_NUMBER:,}, or "0%" to "{_HIGHEST_PERCENT:,}%"'),
]


@dataclass(frozen=True, slots=True)
class Budget:
    """Creations never bring live routes above `ceiling`; drains never leave fewer than `keep` serving.

    `count_stopping`: stopping replicas count like live ones. `alone`: no replica starts before all of other revisions
    have stopped. `keep_in_place`: `keep` where no device is free for one more.
    """

    desired: int
    ceiling: int
    keep: int
    count_stopping: bool = False
    alone: bool = False
    keep_in_place: int | None = None


def is_zero(amount: int | str | None) -> bool:
    """Whether the setting is 0 or 0 %."""
    return amount == 0 or (isinstance(amount, str) and int(amount[:-1]) == 0)


def rounded_up(amount: int | str, desired: int) -> int:
    """Resolve `amount` for `desired` replicas; a percent rounds up."""
    return amount if isinstance(amount, int) else -(-int(amount[:-1]) * desired // 100)


def rounded_down(amount: int | str, desired: int) -> int:
    """Resolve `amount` for `desired` replicas; a percent rounds down."""
    return amount if isinstance(amount, int) else int(amount[:-1]) * desired // 100


@lru_cache(maxsize=1024)  # the deployments of a fleet share a few
def surge_budget(desired: int, max_surge: int | str, max_unavailable: int | str) -> Budget:
    """Ceiling n + s, keep n - u, but at least 1, except for one replica without surge."""
    surge = rounded_up(max_surge, desired)
    unavailable = rounded_down(max_unavailable, desired)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    in_place = max(desired - unavailable, min(desired, 1) if desired > 1 else 0)
    keep = max(in_place, min(desired, 1)) if surge else in_place
    return Budget(desired, desired + surge, keep, keep_in_place=in_place)


@lru_cache(maxsize=1024)
def resting_budget(desired: int, *, count_stopping: bool = False, may_surge: bool = True) -> Budget:
    """Outside a rollout the ceiling is n + 1, n without surge, and keep is n."""
    return Budget(desired, desired + may_surge, desired, count_stopping)


SICK_GRACE_SECONDS = 30.0
"""The time that a sick replica has to recover."""

# naming a member of an enum is slow
_HEALTHY, _STARTING, _STOPPING = RouteStatus.HEALTHY, RouteStatus.PROVISIONING, RouteStatus.TERMINATING
_IN_TRAFFIC = TrafficStatus.ACTIVE
_WELL = (_HEALTHY, _STARTING)

_age = attrgetter("created_at", "id.int")
_WORST = {RouteStatus.UNHEALTHY: 0, RouteStatus.DEGRADED: 1, _STARTING: 2, _HEALTHY: 3}


@dataclass(frozen=True, slots=True)
class Buckets:
    """The routes of a deployment that still run, each in one bucket, the oldest first.

        live, of the target revision   ready | warming | starting | sick
        live, of another revision      foreign | parked, or has lent its devices
        drained, not gone yet          stopping (of the target) | foreign_stopping

    The target is the revision that should run. A live route of it that is neither healthy nor starting is sick.

    `ready`: healthy for at least `min_ready_seconds`; `warming`: healthy, but not for that long yet. `target`: all live
    routes of the target. `next_ready_at`: when the first warming route will be ready.
    """

    ready: tuple[Route, ...]
    warming: tuple[Route, ...]
    starting: tuple[Route, ...]
    sick: tuple[Route, ...]
    foreign: tuple[Route, ...]
    parked: tuple[Route, ...]
    stopping: tuple[Route, ...]
    foreign_stopping: tuple[Route, ...]
    target: tuple[Route, ...]
    next_ready_at: datetime | None

    @classmethod
    def of(
        cls, routes: Iterable[Route], target: UUID, now: datetime, min_ready_seconds: float = 0, *, moves: bool = False
    ) -> Self:
        """Sort those of `routes` that still run, seen from `target`; `moves`: well misplaced ones are foreign."""
        warm, number = timedelta(seconds=min_ready_seconds), target.int  # numbers compare faster than ids
        every: tuple[list[Route], ...] = ([], [], [], [], [], [], [], [])
        ready, warming, starting, sick, foreign, parked, stopping, foreign_stopping = every
        for route in sorted(routes, key=_age):
            status, is_moved = route.status, moves and route.is_misplaced and route.traffic is _IN_TRAFFIC
            of_target = route.revision_id.int == number and not (is_moved and status in _WELL) and not route.has_lent
            if status in INACTIVE:
                if status is _STOPPING:
                    (stopping if of_target else foreign_stopping).append(route)
            elif not of_target:
                until = route.parked_until
                (parked if until and now < until and not route.is_misplaced else foreign).append(route)
            elif status is _HEALTHY:
                (ready if route.status_changed_at + warm <= now else warming).append(route)
            else:
                (starting if status is _STARTING else sick).append(route)
        return cls(
            ready=tuple(ready),
            warming=tuple(warming),
            starting=tuple(starting),
            sick=tuple(sick),
            foreign=tuple(foreign),
            parked=tuple(parked),
            stopping=tuple(stopping),
            foreign_stopping=tuple(foreign_stopping),
            target=(*ready, *warming, *starting, *sick),
            next_ready_at=min((route.status_changed_at + warm for route in warming), default=None),
        )

    @property
    def live(self) -> int:
        """Live replicas that the ceiling counts: without parked ones."""
        return len(self.target) + len(self.foreign)

    def room(self, budget: Budget) -> int:
        return max(0, budget.ceiling - self.used_places(budget))

    def used_places(self, budget: Budget) -> int:
        return self.live + self._counted_stopping(budget)

    def occupied(self, budget: Budget) -> str:
        """In words: "3 live", or "3 live + 1 stopping"."""
        stopping = self._counted_stopping(budget)
        return f"{self.live} live + {stopping} stopping" if stopping else f"{self.live} live"

    def unparked(self) -> Self:
        """Count parked routes as foreign ones, for a revision that cannot run next to another."""
        return replace(self, foreign=self.foreign + self.parked, parked=())

    def replaceable(self, now: datetime) -> tuple[Route, ...]:
        """Routes of the target that have been sick for too long."""
        return sick_too_long(self.sick, now)

    def next_change_at(self, now: datetime) -> datetime | None:
        """When time alone moves a route or makes it replaceable; None: never."""
        ends = (*map(grace_ends_at, self.sick), self.next_ready_at, *(route.parked_until for route in self.parked))
        return min((at for at in ends if at is not None and at > now), default=None)

    def idle(self) -> tuple[Route, ...]:
        """Routes of the target that are out of traffic."""
        return tuple([route for route in self.target if route.traffic is not _IN_TRAFFIC])

    def _counted_stopping(self, budget: Budget) -> int:
        return len(self.stopping) + len(self.foreign_stopping) if budget.count_stopping else 0


def grace_ends_at(route: Route) -> datetime:
    grace = route.status_changed_at + timedelta(seconds=SICK_GRACE_SECONDS)
    return max(grace, route.kept_until or grace)


def sick_too_long(routes: Iterable[Route], now: datetime) -> tuple[Route, ...]:
    """Live routes whose grace is over."""
    return tuple([route for route in routes if route.status not in _WELL and grace_ends_at(route) <= now])


def well_placed(routes: Iterable[Route], now: datetime) -> tuple[Route, ...]:
    """Leave out routes that are replaced: sick for too long, or on a drained host."""
    every = tuple(routes)
    replaced = sick_too_long(every, now)
    return tuple([route for route in every if not route.is_misplaced and route not in replaced])


def next_end_at(routes: Iterable[Route], now: datetime) -> datetime | None:
    """When the first of them is no longer parked, or sick for too long."""
    live = tuple(routes)
    ends = (*(r.parked_until for r in live), *(grace_ends_at(r) for r in live if r.status not in _WELL))
    return min((at for at in ends if at is not None and at > now), default=None)


def worst_first(routes: Iterable[Route]) -> list[Route]:
    """Order routes for draining: out of traffic before in traffic, sick before healthy, misplaced first, then old."""
    aged = sorted(routes, key=_age)
    return sorted(aged, key=lambda r: 100 * (r.traffic is _IN_TRAFFIC) + 10 * _WORST.get(r.status, -1) - r.is_misplaced)


def ids(routes: Iterable[Route]) -> tuple[UUID, ...]:
    return tuple([route.id for route in routes])
