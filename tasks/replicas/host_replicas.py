"""The work of a worker for the replicas of one host, until its runtimes show what Postgres says.

Each route is started at its own time, and leaving replicas are taken down step by step: a start that cannot be made, or
a replica that cannot be stopped now, holds up no other.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Generic, TypeVar
from uuid import UUID

import structlog
from psycopg import Connection
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.proxies.acks import release_drained
from db.proxies.proxy_reports import DrainReport, told_of_drains
from db.replicas.host_routes import (
    PostponedStart,
    RouteRow,
    expected_on,
    postpone_starts,
    record_stopped,
    request_stop,
    routes_to_start,
    routes_to_stop,
)
from db.replicas.kills import Cut, Kill, record_cuts, record_kills
from db.replicas.reports import RouteReport
from db.replicas.secret_requests import note_fault
from domain.model.lifecycle_events import RouteLifecycleType
from domain.model.states import RouteStatus
from domain.replicas.drain import DrainTimes, LeavingRoute, StopStep, cut_by_maximum, next_stop_step
from domain.replicas.health import pause_after
from domain.revisions.secret_refs import references_of
from domain.text.storable import storable
from runtime.host_secrets import NO_SECRETS, HostSecrets, UnreadSecretError
from runtime.process.termination import end
from runtime.protocol import Replica, ReplicaRequest, ReplicaStartError, Runtime
from tasks.cycle.change_and_wake import change_and_wake
from tasks.redis.wake import Waker
from tasks.replicas.preparing import Preparations
from tasks.replicas.reporting import log_gone, log_killed, write_reports
from tasks.telemetry.task_metrics import DRAINS_CUT

_log = structlog.get_logger(__name__)
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
            questions = list(self._asked.items())
            return {route_id: future.result() for route_id, future in questions if self._is_answered(route_id)}

    def _is_answered(self, route_id: UUID) -> bool:
        """Whether there is an answer. A question that has not begun is taken back: a later look asks it again."""
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
        routes_due = partial(routes_to_start, host=self.host, limit=AT_ONCE, but=self._turns.unanswered)
        routes = in_transaction(self.engine, routes_due)
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
        except Exception as error:  # noqa: BLE001  (whatever it is, it must not reach other starts)
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
    return ReplicaRequest(
        route.id, route.deployment, route.revision, route.spec, is_walled=route.is_walled, devices=route.devices or {}
    )


@dataclass(frozen=True, slots=True)
class _Taken:
    """A step, why it was not done, if its runtime gave no answer, and how many answers it cut, as far as is known."""

    step: StopStep
    why_not: str | None = None
    cut: int = 0

    @property
    def is_kill(self) -> bool:
        return self.step is StopStep.KILL and self.why_not is None


@dataclass(frozen=True, slots=True)
class _Trouble:
    """The tries in a row with no answer for a route from a runtime, and when to ask again, in monotonic seconds."""

    tries: int
    again_at: float


@dataclass(eq=False, slots=True)
class Stops:
    """Stops what shall no longer run on `host`. `drain_deadline`: how long proxies may take to acknowledge a drain."""

    engine: Engine
    runtimes: Mapping[str, Runtime]
    waker: Waker
    host: str
    drain_deadline: timedelta
    _turns: Turns[_Taken] = field(default_factory=Turns)
    _troubles: dict[UUID, _Trouble] = field(default_factory=dict)

    def look(self) -> bool:
        """Take each leaving replica one step further. True while one is still leaving whose runtime answers."""
        routes, in_flight = in_transaction(self.engine, self._read_routes)
        by_id = {route.id: route for route in routes}
        self._troubles = {route_id: trouble for route_id, trouble in self._troubles.items() if route_id in by_id}
        due = self._due(routes)
        outcomes = self._turns.ask(due, partial(self._take_step, in_flight=in_flight))
        for route_id, outcome in outcomes.items():
            self._note_trouble(route_id, outcome.why_not)
        to_ask = [route_id for route_id, outcome in outcomes.items() if outcome.step is StopStep.ASK]
        first_asked = [route_id for route_id in to_ask if route_id in by_id and not by_id[route_id].stop_requested_at]
        if first_asked:
            in_transaction(self.engine, partial(request_stop, route_ids=first_asked))
        self._tell_cuts([(by_id[route_id], outcomes[route_id].cut) for route_id in first_asked])
        self._tell_kills(
            [by_id[route_id] for route_id, outcome in outcomes.items() if outcome.is_kill and route_id in by_id]
        )
        gone = [route_id for route_id, outcome in outcomes.items() if outcome.step is StopStep.GONE]
        if gone:
            change_and_wake(self.engine, self.waker, partial(record_stopped, route_ids=gone))
            log_gone((by_id[route_id] for route_id in gone if route_id in by_id), self.host)
        return len(gone) < len(due) or self._turns.is_behind

    def _read_routes(self, connection: Connection) -> tuple[list[RouteRow], DrainReport]:
        release_drained(connection)
        routes = routes_to_stop(connection, self.host)
        return routes, told_of_drains(connection, [route.id for route in routes])

    def _tell_cuts(self, routes: Sequence[tuple[RouteRow, int]]) -> None:
        cuts = [Cut(route.deployment_id, route.spec.drain_max_seconds, answers) for route, answers in routes if answers]
        if cuts:
            in_transaction(self.engine, partial(record_cuts, host=self.host, cuts=cuts))

    def _tell_kills(self, killed: Sequence[RouteRow]) -> None:
        """Tell of kills: whose requests were cut off must be able to find out why."""
        kills = [Kill(route.id, route.deployment_id, route.spec.stop_grace_seconds) for route in killed]
        if kills:
            in_transaction(self.engine, partial(record_kills, host=self.host, kills=kills))

    def _due(self, routes: Sequence[RouteRow]) -> list[RouteRow]:
        now = time.monotonic()
        return [route for route in routes if route.id not in self._troubles or self._troubles[route.id].again_at <= now]

    def _take_step(self, route: RouteRow, in_flight: DrainReport) -> _Taken:
        """Take the next step, as far as its runtime answers."""
        step, cut = self._next_step(route, None, in_flight), 0
        try:
            runtime, request = self._runtime(route), request_of(route)
            replica = runtime.find(route.id)
            step = self._next_step(route, replica is not None and replica.running, in_flight)
            if step is StopStep.ASK:
                cut = cut_by_maximum(self._leaving(route, True, in_flight), self._times(route))  # noqa: FBT003
                runtime.terminate(route.id, request)
            elif step is StopStep.KILL:
                runtime.kill(route.id, request)
                DRAINS_CUT.inc()
                log_killed(route, self.host)
        except Exception as error:  # noqa: BLE001  (whatever it is, it must not reach other stops)
            return _Taken(step, str(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}")
        return _Taken(step, cut=cut)

    def _runtime(self, route: RouteRow) -> Runtime:
        runtime = self.runtimes.get(route.spec.runtime)
        if runtime is None:
            raise OSError(f"this release of Rollway has no runtime {route.spec.runtime!r}")
        return runtime

    def _next_step(self, route: RouteRow, running: bool | None, in_flight: DrainReport) -> StopStep:  # noqa: FBT001
        return next_stop_step(self._leaving(route, running, in_flight), self._times(route), in_flight.now)

    def _leaving(self, route: RouteRow, running: bool | None, in_flight: DrainReport) -> LeavingRoute:  # noqa: FBT001
        trouble = self._troubles.get(route.id)
        return LeavingRoute(
            status=route.status,
            was_started=route.started_at is not None,
            running=running,
            is_unheard=trouble is not None and route.stop_requested_at is not None,
            drain_started_at=route.drain_started_at,
            out_of_traffic_at=route.out_of_traffic_at,
            stop_requested_at=route.stop_requested_at,
            has_address=route.address is not None,
            do_proxies_tell=in_flight.do_proxies_tell,
            have_proxies_told=in_flight.have_proxies_told,
            look=in_flight.looks.get(route.id),
        )

    def _times(self, route: RouteRow) -> DrainTimes:
        return DrainTimes.of(route.spec, self.drain_deadline)

    def _note_trouble(self, route_id: UUID, why: str | None) -> None:
        """A trouble is said when it begins and when it ends, and not at each try."""
        before = self._troubles.pop(route_id, None)
        if why is None:
            if before is not None:
                _log.warning("a leaving replica is reached again", route=str(route_id), tries=before.tries + 1)
            return
        if before is None:
            _log.warning("replica not stopped; tried again and again", route=str(route_id), why=why)
        tries = before.tries + 1 if before else 1
        self._troubles[route_id] = _Trouble(tries, time.monotonic() + pause_after(tries).total_seconds())


STRANGERS_AT_ONCE = 3
STRANGERS_GRACE_SECONDS = 5.0
"""For replicas whose routes the database has never heard of, as after an older backup was restored: they may serve."""


class HostReplicas:
    """Prepares the host `name` for replicas, and starts, stops and sweeps those that run there.

    `drain_deadline`: how long proxies may take to acknowledge a drain. `secrets`: what replicas may refer to.
    """

    def __init__(  # noqa: PLR0913  (what a worker is composed of, each by its name)
        self,
        engine: Engine,
        runtimes: Mapping[str, Runtime],
        waker: Waker,
        name: str,
        drain_deadline: timedelta,
        secrets: HostSecrets = NO_SECRETS,
    ) -> None:
        self._engine = engine
        self._runtimes = runtimes
        self._name = name
        self.prepare = Preparations(engine, runtimes, waker, name, secrets).look
        self.start = Starts(engine, runtimes, waker, name, secrets).look
        self.stop = Stops(engine, runtimes, waker, name, drain_deadline).look

    def sweep(self) -> bool:
        """End replicas that no route expects here any more, and forget those that have ended."""
        for name, runtime in self._runtimes.items():
            try:
                self._sweep(name, runtime)
            except OSError as error:  # on most hosts: there is no Docker engine, and so nothing to sweep
                _log.debug("replicas not swept; tried again at the next look", runtime=name, why=str(error))
        return False

    def _sweep(self, name: str, runtime: Runtime) -> None:
        replicas = runtime.everyone()
        ids = [replica.route_id for replica in replicas]
        expected = in_transaction(self._engine, partial(expected_on, host=self._name, route_ids=ids))
        for replica in replicas:
            if expected.get(replica.route_id):
                continue
            if not replica.running:
                runtime.forget(replica.route_id)
            elif replica.route_id in expected:
                _log.warning("a replica that no route expects is ended", runtime=name, route=str(replica.route_id))
                runtime.kill(replica.route_id)
        strangers = [replica.route_id for replica in replicas if replica.running and replica.route_id not in expected]
        if strangers:
            _log.warning("replicas of unknown routes are asked to end", runtime=name, routes=list(map(str, strangers)))
            end(runtime, strangers[:STRANGERS_AT_ONCE], STRANGERS_GRACE_SECONDS)
