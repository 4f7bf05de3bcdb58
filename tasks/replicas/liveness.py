"""Knows which replicas run: asks their runtimes for each of them once a second."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from db.replicas.host_routes import RouteRow
from runtime.protocol import Replica, Runtime

_EVERY_SECONDS = 1.0
_MOST_SECONDS = 0.1
"""The time for all questions of a look: a slow runtime is asked less often, and holds up no probe."""

_Found = dict[UUID, Replica | None]
_log = structlog.get_logger(__name__)


@dataclass(eq=False, slots=True)
class Silences:
    """The runtimes that gave no answer to the last question, and the times when others began to answer again.

    A worker process has one for all its passes, since an engine may be away for longer than a pass.
    """

    _silent: set[str] = field(default_factory=set)
    _ended: dict[str, float] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name in self._silent

    def begin(self, name: str, error: OSError) -> None:
        """A runtime gave no answer."""
        if name not in self._silent:
            _log.warning("a runtime gives no answer; its replicas are unknown", runtime=name, why=str(error))
        self._silent.add(name)

    def end(self, name: str) -> None:
        """A runtime gave an answer."""
        if name in self._silent:
            self._ended[name] = time.monotonic()
        self._silent.discard(name)

    def ended_at(self, name: str, now: datetime) -> datetime | None:
        """The time when a runtime answered again, by a clock that shows `now`; None when it never was silent."""
        ended = self._ended.get(name)
        return None if ended is None else now - timedelta(seconds=time.monotonic() - ended)


class Liveness:
    """Asks for the replicas first whose last question is oldest, each runtime in a thread of its own.

    While a runtime hangs or raises OSError, its replicas are unknown.
    """

    def __init__(self, runtimes: Mapping[str, Runtime], silences: Silences) -> None:
        self._runtimes = runtimes
        self._silences = silences
        self._threads = ThreadPoolExecutor(max(1, len(runtimes)), "liveness")
        self._asking: dict[str, Future[_Found]] = {}
        self._asked: dict[UUID, float] = {}
        self._behind: set[str] = set()

    @property
    def is_behind(self) -> bool:
        """Whether the last call ended before each replica had its turn."""
        return bool(self._behind)

    def ask(self, routes: Iterable[RouteRow]) -> _Found:
        """Ask for the routes whose turn it is; returns each one's replica, or None where there is none, by route id.

        A question that hangs is left to a later call.
        """
        began = time.monotonic()
        waiting: dict[str, list[RouteRow]] = defaultdict(list)
        for route in sorted(routes, key=lambda route: self._asked.get(route.id, 0.0)):
            if self._asked.get(route.id, 0.0) <= began - _EVERY_SECONDS:
                waiting[route.spec.runtime].append(route)
        for name in waiting.keys() - self._asking.keys():
            self._asking[name] = self._threads.submit(self._ask, name, waiting[name])
        finished, _ = wait(self._asking.values(), timeout=2 * _MOST_SECONDS)
        replicas: _Found = {}
        for name, asking in list(self._asking.items()):
            if asking in finished:
                replicas.update(self._asking.pop(name).result())
        return replicas

    def ask_next(self, route_id: UUID) -> None:
        """Ask for this replica at the next look: a probe of it failed."""
        self._asked.pop(route_id, None)

    def is_unknown(self, route: RouteRow) -> bool:
        """Whether its runtime gave no answer when it was asked last, or has given none yet."""
        return route.spec.runtime in self._silences or route.spec.runtime in self._asking

    def _ask(self, name: str, routes: Sequence[RouteRow]) -> _Found:
        """Ask a runtime for replicas until the time is over or it gives no answer; a later look continues."""
        began, replicas = time.monotonic(), dict[UUID, Replica | None]()
        self._behind.discard(name)
        for route in routes:
            if time.monotonic() - began > _MOST_SECONDS:
                self._behind.add(name)
                break
            self._asked[route.id] = time.monotonic()
            try:
                replicas[route.id] = self._runtimes[name].find(route.id)
            except OSError as error:
                self._silences.begin(name, error)
                break
            self._silences.end(name)
        return replicas
