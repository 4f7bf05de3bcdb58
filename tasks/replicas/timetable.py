"""When each replica is probed: one that starts at every look, one that runs once in each of its intervals."""

from collections.abc import Sequence
from datetime import datetime

from db.replicas.routes import RouteRow
from domain.model import RouteStatus
from domain.replicas.health import ProbedRoute, probe_is_due
from runtime.probes import ProbeTarget

_STARTING_AT_ONCE = 50


class Timetable:
    """Of the routes that it was given last; `starting` may be renewed more often than the whole."""

    def __init__(self) -> None:
        self.starting: Sequence[RouteRow] = ()
        self._running: Sequence[tuple[RouteRow, float, float]] = ()
        self._turn = 0

    @property
    def per_second(self) -> float:
        """Probes a second of those that run."""
        return sum(1 / interval for _, _, interval in self._running)

    def cover(self, routes: Sequence[RouteRow]) -> None:
        """Plan for these routes, and no others."""
        self._running = [
            (route, known(route).started_at.timestamp(), route.spec.health_check.interval_seconds)
            for route in routes
            if route.spec.health_check and route.status is not RouteStatus.PROVISIONING
        ]

    def due(self, since: datetime, now: datetime) -> list[ProbeTarget]:
        """Those that run and have a multiple of their interval between the two times; then some that start.

        Each counts from its own start, so that a thousand are not probed in the same instant.
        """
        a, b = since.timestamp(), now.timestamp()
        passed = [route for route, start, every in self._running if (b - start) // every > (a - start) // every]
        return [target for route in [*passed, *self._some_starting(now)] if (target := _target(route, now))]

    def _some_starting(self, now: datetime) -> list[RouteRow]:
        """They must not starve those that serve, so they take turns."""
        ready = [route for route in self.starting if _target(route, now)]
        first = self._turn % len(ready) if len(ready) > _STARTING_AT_ONCE else 0
        self._turn = first + _STARTING_AT_ONCE
        return [*ready[first:], *ready[:first]][:_STARTING_AT_ONCE]


def known(route: RouteRow) -> ProbedRoute:
    """What is known of a route before a probe. Raises ValueError for one that was not started."""
    if route.started_at is None:
        raise ValueError(f"route {route.id} is probed before it was started")
    return ProbedRoute(route.status, route.started_at, route.probe_streak)


def _target(route: RouteRow, now: datetime) -> ProbeTarget | None:
    """None for what has no check, or no address yet, or whose initial delay is not over."""
    check = route.spec.health_check
    if check is None or route.address is None or not probe_is_due(check, known(route), now):
        return None
    return ProbeTarget(route.id, route.address, check)
