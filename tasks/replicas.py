"""Starting, stopping and sweeping replicas: each a look at what Postgres says and what the runtime sees."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial

import structlog
from sqlalchemy import Engine

from db.deployments import database_now
from db.engine import in_transaction
from db.routes import (
    RouteReport,
    RouteRow,
    apply_reports,
    record_stopped,
    request_stop,
    routes_to_start,
    routes_to_stop,
    statuses_of,
    unstopped,
)
from domain.drain import Leaving, StopStep, next_stop_step
from domain.model import RouteStatus
from domain.route_events import RouteLifecycleType
from runtime.base import ReplicaRequest, ReplicaStartError, Runtime
from tasks.wake import Waker

STARTS_AT_ONCE = 50
_log = structlog.get_logger(__name__)


def start_replicas(engine: Engine, runtimes: Mapping[str, Runtime], waker: Waker) -> bool:
    """Start the replicas of new routes, some at a time. True while there may be more."""
    routes = in_transaction(engine, lambda connection: routes_to_start(connection, STARTS_AT_ONCE))
    if not routes:
        return False
    reports = [report for route in routes if (report := _start(route, runtimes[route.spec.runtime])) is not None]
    statuses = in_transaction(engine, lambda connection: statuses_of(connection, apply_reports(connection, reports)))
    waker.deployments(statuses)
    waker.routes(RouteLifecycleType.PROBE)
    return len(routes) == STARTS_AT_ONCE


def stop_replicas(engine: Engine, runtimes: Mapping[str, Runtime], waker: Waker) -> bool:
    """Take each leaving replica one step further. True while one is still leaving."""
    routes, now = in_transaction(engine, lambda connection: (routes_to_stop(connection), database_now(connection)))
    steps = {route.id: _step(route, runtimes[route.spec.runtime], now) for route in routes}
    asked = [route for route in routes if steps[route.id] is StopStep.ASK]
    gone = [route.id for route in routes if steps[route.id] is StopStep.GONE]
    for route in asked:
        runtimes[route.spec.runtime].terminate(route.id)
    in_transaction(engine, lambda connection: request_stop(connection, [route.id for route in asked]))
    for route in routes:
        if steps[route.id] is StopStep.KILL:
            runtimes[route.spec.runtime].kill(route.id)
    if gone:
        waker.deployments(
            in_transaction(engine, lambda connection: statuses_of(connection, record_stopped(connection, gone)))
        )
    return len(gone) < len(routes)


def sweep_replicas(engine: Engine, runtimes: Mapping[str, Runtime]) -> bool:
    """End replicas that no route expects any more, and forget those that have ended."""
    for name, runtime in runtimes.items():
        replicas = runtime.everyone()
        ids = [replica.route_id for replica in replicas]
        expected = in_transaction(engine, partial(unstopped, route_ids=ids))
        for replica in replicas:
            if replica.route_id in expected:
                continue
            if replica.running:
                _log.warning("a replica without a route is ended", runtime=name, route=str(replica.route_id))
                runtime.kill(replica.route_id)
            else:
                runtime.forget(replica.route_id)
    return False


def _start(route: RouteRow, runtime: Runtime) -> RouteReport | None:
    """What became of the start; None when the runtime itself is in trouble, so that the next look tries again."""
    try:
        replica = runtime.start(ReplicaRequest(route.id, route.deployment, route.revision, route.spec))
    except ReplicaStartError as error:
        return RouteReport(route.id, route.endpoint_id, route.status, RouteStatus.FAILED, reason=str(error))
    except OSError:
        _log.exception("replica not started; tried again at the next look", route=str(route.id))
        return None
    return RouteReport(
        route.id, route.endpoint_id, route.status, route.status, address=replica.address, handle=replica.handle
    )


def _step(route: RouteRow, runtime: Runtime, now: datetime) -> StopStep:
    replica = runtime.find(route.id)
    running = replica is not None and replica.running
    leaving = Leaving(route.status, running, route.drain_started_at, route.stop_requested_at)
    return next_stop_step(leaving, route.spec.drain_seconds, route.spec.stop_grace_seconds, now)
