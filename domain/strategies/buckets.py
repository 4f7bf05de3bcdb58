"""Every live route in exactly one bucket, seen from the revision that should run.

    of the target:   ready | warming | starting | sick        of any other revision: old | parked

Buckets are made by `is_active` and by what is left over, not by a list of states: a health state that nobody has
thought of yet is sick, so it is counted and never a reason to create without end.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from domain.model import Route, RouteStatus, TrafficStatus

SICK_GRACE_SECONDS = 30.0
"""How long an unhealthy or degraded replica may take to come back before it is replaced."""

_WORST_FIRST = {
    RouteStatus.UNHEALTHY: 0,
    RouteStatus.DEGRADED: 1,
    RouteStatus.PROVISIONING: 2,
    RouteStatus.HEALTHY: 3,
}


@dataclass(frozen=True, slots=True)
class Buckets:
    """Live routes, the eldest first. `ready`: healthy for `min_ready_seconds`; `warming`: not for that long yet."""

    ready: tuple[Route, ...]
    warming: tuple[Route, ...]
    starting: tuple[Route, ...]
    sick: tuple[Route, ...]
    old: tuple[Route, ...]
    parked: tuple[Route, ...]
    next_ready_at: datetime | None
    own: tuple[Route, ...]
    """All live routes of the target."""

    @classmethod
    def of(cls, routes: Iterable[Route], target: UUID, now: datetime, min_ready_seconds: float = 0) -> Self:
        """Sort the live ones of `routes`, seen from `target`."""
        warm, number = timedelta(seconds=min_ready_seconds), target.int  # numbers compare faster than ids
        ready: list[Route] = []
        warming: list[Route] = []
        starting: list[Route] = []
        sick: list[Route] = []
        old: list[Route] = []
        parked: list[Route] = []
        for route in sorted(routes, key=_age):
            status = route.status
            if not status.is_active:
                continue
            if route.revision_id.int != number:
                (parked if _is_parked(route, now) else old).append(route)
            elif status is RouteStatus.HEALTHY:
                (ready if route.status_changed_at + warm <= now else warming).append(route)
            else:
                (starting if status is RouteStatus.PROVISIONING else sick).append(route)
        return cls(
            ready=tuple(ready),
            warming=tuple(warming),
            starting=tuple(starting),
            sick=tuple(sick),
            old=tuple(old),
            parked=tuple(parked),
            next_ready_at=min((route.status_changed_at + warm for route in warming), default=None),
            own=(*ready, *warming, *starting, *sick),
        )

    @property
    def total(self) -> int:
        """All live routes but the parked ones: what the ceiling counts."""
        return len(self.own) + len(self.old)

    @property
    def next_unparked_at(self) -> datetime | None:
        """When the first parked route has been kept long enough."""
        return min((route.parked_until for route in self.parked if route.parked_until), default=None)

    def unparked(self) -> Self:
        """The same with the parked ones among the old, for what cannot run beside another revision."""
        return replace(self, old=self.old + self.parked, parked=())

    def lost(self, now: datetime) -> tuple[Route, ...]:
        """Own routes that have been sick for longer than the grace."""
        return tuple([route for route in self.sick if grace_ends_at(route) <= now])

    def idle(self) -> tuple[Route, ...]:
        """Own routes that are out of traffic."""
        return tuple([route for route in self.own if route.traffic is TrafficStatus.INACTIVE])


def still_running(routes: Iterable[Route], target: UUID) -> int:
    """Replicas of other revisions that have not stopped yet: live, parked, or on their way out."""
    return sum(
        route.revision_id != target and (route.is_active or route.status is RouteStatus.TERMINATING) for route in routes
    )


def _age(route: Route) -> tuple[datetime, UUID]:
    return route.created_at, route.id


def _is_parked(route: Route, now: datetime) -> bool:
    return route.parked_until is not None and now < route.parked_until


def grace_ends_at(route: Route) -> datetime:
    """When a sick route counts as lost."""
    return route.status_changed_at + timedelta(seconds=SICK_GRACE_SECONDS)


def worst_first(routes: Iterable[Route]) -> list[Route]:
    """The order to drain in: out of traffic before serving, sick before healthy, old before young."""
    return sorted(
        routes,
        key=lambda r: (r.traffic is TrafficStatus.ACTIVE, _WORST_FIRST.get(r.status, -1), r.created_at, r.id),
    )


def ids(routes: Iterable[Route]) -> tuple[UUID, ...]:
    """Their ids, in the same order."""
    return tuple([route.id for route in routes])
