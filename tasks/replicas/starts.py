"""Starts the replicas of one host, each route at its own time: a start that cannot be made holds up no other."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar
from uuid import UUID

import structlog
from sqlalchemy import Engine

from db.connection.engine import in_transaction
from db.replicas.reports import RouteReport
from db.replicas.routes import PostponedStart, RouteRow, postpone_starts, routes_to_start
from db.replicas.secrets import note_fault
from domain.model.states import RouteStatus
from domain.replicas.health import pause_after
from domain.replicas.route_events import RouteLifecycleType
from domain.revisions.secret_refs import references_of
from domain.text.storable import storable
from runtime.host_secrets import NO_SECRETS, HostSecrets, UnreadSecretError
from runtime.protocol import Replica, ReplicaRequest, ReplicaStartError, Runtime
from tasks.redis.wake import Waker
from tasks.replicas.reporting import write_reports

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


AT_ONCE = 50
_log = structlog.get_logger(__name__)


@dataclass(eq=False, slots=True)
class Starts:
    """Starts what is to run on `host`."""

    engine: Engine
    runtimes: Mapping[str, Runtime]
    waker: Waker
    host: str
    secrets: HostSecrets = NO_SECRETS
    _turns: Turns[RouteReport | PostponedStart] = field(default_factory=Turns)

    def look(self) -> bool:
        """Start the replicas of new routes, some at a time. True while there may be more."""
        read = partial(routes_to_start, host=self.host, limit=AT_ONCE, but=self._turns.unanswered)
        routes = in_transaction(self.engine, read)
        ends = self._turns.ask(routes, self._start)
        postponed = [end for end in ends.values() if isinstance(end, PostponedStart)]
        if postponed:
            in_transaction(self.engine, partial(postpone_starts, postponed=postponed))
        reports = [end for end in ends.values() if isinstance(end, RouteReport)]
        if reports:
            write_reports(self.engine, self.waker, reports)
            self.waker.routes_on([self.host], RouteLifecycleType.PROBE)
        return len(routes) == AT_ONCE or self._turns.is_behind

    def _start(self, route: RouteRow) -> RouteReport | PostponedStart:
        """Start one replica and report it, or say why its runtime gave no answer."""
        failed = partial(RouteReport, route.id, route.deployment_id, route.status, RouteStatus.FAILED)
        if route.unreadable is not None:
            return failed(reason=route.unreadable)
        try:
            replica = self._running(request_of(route))
        except UnreadSecretError as error:  # noted first: what replaces it shall be placed elsewhere
            note = partial(note_fault, deployment=route.deployment, reference=error.reference, fault=error.fault)
            in_transaction(self.engine, partial(note, host=self.host))
            return failed(reason=str(error))
        except ReplicaStartError as error:
            return failed(reason=str(error))
        except OSError as error:
            return self._postponed(route, str(error))
        except Exception as error:  # noqa: BLE001  (whatever it is, it must not reach those that start beside it)
            _log.exception("replica not started", route=str(route.id))
            return failed(reason=storable(f"it cannot be started: {type(error).__name__}: {error}"))
        if route.start_tries:
            _log.warning("replica started at last", route=str(route.id), tries=route.start_tries + 1)
        return RouteReport(
            route.id, route.deployment_id, route.status, route.status, address=replica.address, handle=replica.handle
        )

    def _running(self, request: ReplicaRequest) -> Replica:
        """Secrets are read unless the replica runs already, as after a crash: then they may have changed or be gone."""
        runtime = self.runtimes[request.spec.runtime]
        if references_of(request.spec.env) and runtime.find(request.route_id) is None:
            request = replace(request, secrets=self.secrets.of(request))
        return runtime.start(request)

    def _postponed(self, route: RouteRow, why: str) -> PostponedStart:
        if not route.start_tries:  # said once, and not at each try
            _log.warning("replica not started; tried again and again", route=str(route.id), why=why)
        return PostponedStart(route.id, storable(why), pause_after(route.start_tries + 1))


def request_of(route: RouteRow) -> ReplicaRequest:
    """Return what its runtime is asked with."""
    return ReplicaRequest(route.id, route.deployment, route.revision, route.spec, is_walled=route.is_walled)
