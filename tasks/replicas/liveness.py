"""Which replicas run: asks their runtimes for each of them once a second."""

import time
from collections.abc import Iterable, Mapping
from uuid import UUID

import structlog

from db.replicas.routes import RouteRow
from runtime.base import Replica, Runtime

_EVERY_SECONDS = 1.0
_MOST_SECONDS = 0.1
"""For all the asking of one look: a slow runtime is asked less often, and holds up no probe."""

_log = structlog.get_logger(__name__)


class Liveness:
    """Asks those first that were not asked for longest. While a runtime raises OSError, its replicas are unknown."""

    def __init__(self, runtimes: Mapping[str, Runtime]) -> None:
        self._runtimes = runtimes
        self._asked: dict[UUID, float] = {}
        self._silent: set[str] = set()
        self.is_behind = False
        """Whether the last call ended before everybody had their turn."""

    def ask(self, routes: Iterable[RouteRow]) -> dict[UUID, Replica | None]:
        """Ask for the routes whose turn it is; returns each one's replica, or None where there is none, by route id."""
        began = time.monotonic()
        waiting = [route for route in routes if self._asked.get(route.id, 0.0) <= began - _EVERY_SECONDS]
        waiting.sort(key=lambda route: self._asked.get(route.id, 0.0))
        found: dict[UUID, Replica | None] = {}
        failing: set[str] = set()
        self.is_behind = False
        for route in waiting:
            if time.monotonic() - began > _MOST_SECONDS:
                self.is_behind = True
                break
            if route.spec.runtime not in failing and not self._ask(route, found):
                failing.add(route.spec.runtime)
        return found

    def ask_next(self, route_id: UUID) -> None:
        """Ask for this replica at the next look: a probe of it failed."""
        self._asked.pop(route_id, None)

    def is_unknown(self, route: RouteRow) -> bool:
        """Whether its runtime gave no answer when it was asked last."""
        return route.spec.runtime in self._silent

    def _ask(self, route: RouteRow, found: dict[UUID, Replica | None]) -> bool:
        """Ask for one replica; False when its runtime gives no answer. The next look asks it for another one."""
        name = route.spec.runtime
        self._asked[route.id] = time.monotonic()
        try:
            found[route.id] = self._runtimes[name].find(route.id)
        except OSError as error:
            if name not in self._silent:
                _log.warning("a runtime gives no answer; its replicas are unknown", runtime=name, why=str(error))
            self._silent.add(name)
            return False
        self._silent.discard(name)
        return True
