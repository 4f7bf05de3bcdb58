"""Starts, stops and sweeps the replicas of one host, until its runtimes show what Postgres says."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog
from sqlalchemy import Engine

from db.engine import database_now, in_transaction
from db.proxies.acks import release_drained
from db.replicas.reports import RouteReport, apply_reports
from db.replicas.routes import (
    RouteRow,
    expected_on,
    record_stopped,
    request_stop,
    routes_to_start,
    routes_to_stop,
)
from domain.model import RouteStatus
from domain.replicas.drain import DrainTimes, LeavingRoute, StopStep, next_stop_step
from domain.replicas.events import RouteLifecycleType
from runtime.base import Replica, ReplicaRequest, ReplicaStartError, Runtime
from runtime.ending import end
from tasks.change import change_and_wake
from tasks.redis.wake import Waker

STARTS_AT_ONCE = 50
STRANGERS_AT_ONCE = 3
STRANGERS_GRACE_SECONDS = 5.0
"""For replicas whose routes the database has never heard of, as after an older backup was restored: they may serve."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HostReplicas:
    """Works on the replicas of the host `name`. `drain_deadline`: how long proxies may take to acknowledge a drain."""

    engine: Engine
    runtimes: Mapping[str, Runtime]
    waker: Waker
    name: str
    drain_deadline: timedelta

    def start(self) -> bool:
        """Start the replicas of new routes, some at a time. True while there may be more."""
        routes = in_transaction(self.engine, lambda connection: routes_to_start(connection, self.name, STARTS_AT_ONCE))
        if not routes:
            return False
        reports = [report for route in routes if (report := self._start(route)) is not None]
        change_and_wake(self.engine, self.waker, partial(apply_reports, reports=reports))
        self.waker.routes_on([self.name], RouteLifecycleType.PROBE)
        return len(routes) == STARTS_AT_ONCE

    def stop(self) -> bool:
        """Take each leaving replica one step further. True while one is still leaving."""
        in_transaction(self.engine, release_drained)
        routes, now = in_transaction(
            self.engine, lambda connection: (routes_to_stop(connection, self.name), database_now(connection))
        )
        steps = {route.id: self._take_step(route, now) for route in routes}
        asked = [route_id for route_id, step in steps.items() if step is StopStep.ASK]
        in_transaction(self.engine, partial(request_stop, route_ids=asked))
        gone = [route_id for route_id, step in steps.items() if step is StopStep.GONE]
        if gone:
            change_and_wake(self.engine, self.waker, partial(record_stopped, route_ids=gone))
        return len(gone) < len(routes)

    def sweep(self) -> bool:
        """End replicas that no route expects here any more, and forget those that have ended."""
        for name, runtime in self.runtimes.items():
            try:
                self._sweep(name, runtime)
            except OSError as error:  # on most hosts: there is no Docker engine, and so nothing to sweep
                _log.debug("replicas not swept; tried again at the next look", runtime=name, why=str(error))
        return False

    def _runtime(self, route: RouteRow) -> Runtime:
        return self.runtimes[route.spec.runtime]

    def _start(self, route: RouteRow) -> RouteReport | None:
        """Start one replica and report it; None when its runtime is in trouble, so that the next look tries again."""
        try:
            replica = self._runtime(route).start(_request(route))
        except ReplicaStartError as error:
            return RouteReport(route.id, route.deployment_id, route.status, RouteStatus.FAILED, reason=str(error))
        except OSError as error:
            _log.warning("replica not started; tried again at the next look", route=str(route.id), why=str(error))
            return None
        return RouteReport(
            route.id, route.deployment_id, route.status, route.status, address=replica.address, handle=replica.handle
        )

    def _sweep(self, name: str, runtime: Runtime) -> None:
        replicas = runtime.everyone()
        ids = [replica.route_id for replica in replicas]
        expected = in_transaction(self.engine, partial(expected_on, host=self.name, route_ids=ids))
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

    def _take_step(self, route: RouteRow, now: datetime) -> StopStep:
        """Take the next step and return it; WAIT when its runtime is in trouble, so that the next look tries again."""
        runtime, request = self._runtime(route), _request(route)
        try:
            step = self._next_step(route, runtime.find(route.id), now)
            if step is StopStep.ASK:
                runtime.terminate(route.id, request)
            elif step is StopStep.KILL:
                runtime.kill(route.id, request)
        except OSError as error:
            _log.warning("replica not stopped; tried again at the next look", route=str(route.id), why=str(error))
            return StopStep.WAIT
        return step

    def _next_step(self, route: RouteRow, replica: Replica | None, now: datetime) -> StopStep:
        leaving = LeavingRoute(
            status=route.status,
            running=replica is not None and replica.running,
            drain_started_at=route.drain_started_at,
            out_of_traffic_at=route.out_of_traffic_at,
            stop_requested_at=route.stop_requested_at,
        )
        times = DrainTimes(
            deadline=self.drain_deadline,
            drain=timedelta(seconds=route.spec.drain_seconds),
            stop_grace=timedelta(seconds=route.spec.stop_grace_seconds),
        )
        return next_stop_step(leaving, times, now)


def _request(route: RouteRow) -> ReplicaRequest:
    return ReplicaRequest(route.id, route.deployment, route.revision, route.spec)
