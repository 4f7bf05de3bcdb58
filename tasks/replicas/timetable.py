"""Times the probes of replicas: one that starts by how long it has been starting, one that runs by its interval."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from db.replicas.routes import RouteRow
from domain.model.states import RouteStatus
from domain.replicas.health import pause_while_starting, probe_is_due
from runtime.probing.probes import ProbeTarget
from tasks.replicas.probed import probed_route

MOST_PAUSE = timedelta(seconds=0.1)
"""From one look to the next: how late a pass may see that another replica starts."""
_STARTING_AT_ONCE = 50
_A_STARTING = MOST_PAUSE / _STARTING_AT_ONCE
"""Replicas that start must not starve those that serve, so a look that asked many of them is followed later."""
_NEVER = datetime.min.replace(tzinfo=UTC)


class Timetable:
    """Plans the probes of the routes that a pass read last. `routes` has them by id."""

    def __init__(self) -> None:
        self.routes: dict[UUID, RouteRow] = {}
        self._starting: Sequence[RouteRow] = ()
        self._running: Sequence[tuple[RouteRow, float, float]] = ()
        self._asked: dict[UUID, datetime] = {}
        self.pause = MOST_PAUSE
        """Until the look after the one for which `due` was called last."""

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
        """Replicas for which this look is nearer to the time of their next probe than the next look will be.

        Who was not asked for longest comes first.
        """
        pauses = {
            route.id: pause_while_starting(probed_route(route), now) for route in self._starting if _target(route, now)
        }
        shortest = min([MOST_PAUSE, *pauses.values()])
        self._asked = {route_id: self._asked.get(route_id, _NEVER) for route_id in pauses}
        due = [route_id for route_id, pause in pauses.items() if self._asked[route_id] + pause <= now + shortest / 2]
        asked = sorted(due, key=self._asked.__getitem__)[:_STARTING_AT_ONCE]
        self._asked.update(dict.fromkeys(asked, now))
        self.pause = max(shortest, len(asked) * _A_STARTING)
        return [self.routes[route_id] for route_id in asked]


def _target(route: RouteRow, now: datetime) -> ProbeTarget | None:
    """None for what has no check, or no address yet, or whose initial delay is not over."""
    check = route.spec.health_check
    if check is None or route.address is None or route.started_at is None:
        return None
    return (
        ProbeTarget(route.id, route.address, check, route.tls) if probe_is_due(check, route.started_at, now) else None
    )
