"""Questions to runtimes, in a few threads for each: one that hangs holds up nobody else."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar
from uuid import UUID

from db.replicas.routes import RouteRow

_THREADS = 8
_PATIENCE_SECONDS = 0.5
"""The time of one look: what hangs for longer is answered in a later one."""

Answer = TypeVar("Answer")


class Turns(Generic[Answer]):
    """Asks first for those routes that were not asked for longest; always the same question."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._asked: dict[UUID, Future[Answer]] = {}
        self._last: dict[UUID, float] = {}
        self.is_behind = False
        """Whether somebody hangs, or had no turn, as the last call ended."""

    @property
    def unanswered(self) -> Sequence[UUID]:
        """The routes that were asked for and hang."""
        return list(self._asked)

    def ask(self, routes: Sequence[RouteRow], question: Callable[[RouteRow], Answer]) -> Mapping[UUID, Answer]:
        """The answers for these routes, and those to earlier calls, by route id; what hangs is left to a later call.

        Raises what the question raises.
        """
        with self._lock:
            self._last = {route.id: self._last.get(route.id, 0.0) for route in routes}
            for route in sorted(routes, key=lambda route: self._last[route.id]):
                if route.id not in self._asked:
                    self._asked[route.id] = self._of(route.spec.runtime).submit(question, route)
            wait(self._asked.values(), timeout=_PATIENCE_SECONDS)
            self.is_behind = False
            asked = list(self._asked.items())
            return {route_id: future.result() for route_id, future in asked if self._is_answered(route_id)}

    def _is_answered(self, route_id: UUID) -> bool:
        """Whether there is an answer. A question that has not begun is taken back: a later look asks it anew."""
        future = self._asked[route_id]
        if not future.cancel():
            self._last[route_id] = time.monotonic()
        if future.done():
            del self._asked[route_id]
        self.is_behind |= not future.done() or future.cancelled()
        return future.done() and not future.cancelled()

    def _of(self, runtime: str) -> ThreadPoolExecutor:
        if runtime not in self._threads:
            self._threads[runtime] = ThreadPoolExecutor(_THREADS, f"{runtime} replicas")
        return self._threads[runtime]
