"""Times the probes of replicas: one that starts at every look, one that runs once in each of its intervals."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from db.replicas.routes import RouteRow
from domain.model.states import RouteStatus
from domain.replicas.health import probe_is_due
from runtime.probing.probes import ProbeTarget

_STARTING_AT_ONCE = 50


class Timetable:
    """Plans the probes of the routes that a pass read last. `routes` has them by id."""

    def __init__(self) -> None:
        self.routes: dict[UUID, RouteRow] = {}
        self._starting: Sequence[RouteRow] = ()
        self._running: Sequence[tuple[RouteRow, float, float]] = ()
        self._turn = 0

    @property
    def starting(self) -> set[UUID]:
        """The routes that were never healthy yet."""
        return {route.id for route in self._starting}

    @property
    def per_second(self) -> float:
        """Probes a second of those that run."""
        return sum(1 / interval for _, _, interval in self._running)

    def cover(self, routes: Sequence[RouteRow]) -> None:
        """Plan for these routes, and no others."""
        self.routes = {}
        self._running = [
            (route, route.started_at.timestamp(), route.spec.health_check.interval_seconds)
            for route in routes
            if route.spec.health_check and route.started_at and route.status is not RouteStatus.PROVISIONING
        ]
        self.renew_starting(routes)

    def renew_starting(self, routes: Sequence[RouteRow]) -> None:
        """Plan anew for the routes that start, which are among these; the others stay as they were."""
        self.routes.update((route.id, route) for route in routes)
        self._starting = [route for route in routes if route.status is RouteStatus.PROVISIONING]

    def due(self, since: datetime, now: datetime) -> list[ProbeTarget]:
        """Replicas that run and have a multiple of their interval between the two times; then some that start.

        Each counts from its own start, so that a thousand are not probed in the same instant.
        """
        a, b = since.timestamp(), now.timestamp()
        passed = [route for route, start, every in self._running if (b - start) // every > (a - start) // every]
        return [target for route in [*passed, *self._some_starting(now)] if (target := _target(route, now))]

    def _some_starting(self, now: datetime) -> list[RouteRow]:
        """Replicas that start must not starve those that serve, so they take turns."""
        ready = [route for route in self._starting if _target(route, now)]
        first = self._turn % len(ready) if len(ready) > _STARTING_AT_ONCE else 0
        self._turn = first + _STARTING_AT_ONCE
        return [*ready[first:], *ready[:first]][:_STARTING_AT_ONCE]


def _target(route: RouteRow, now: datetime) -> ProbeTarget | None:
    """None for what has no check, or no address yet, or whose initial delay is not over."""
    check = route.spec.health_check
    if check is None or route.address is None or route.started_at is None:
        return None
    return (
        ProbeTarget(route.id, route.address, check, route.tls) if probe_is_due(check, route.started_at, now) else None
    )
