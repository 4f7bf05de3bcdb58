"""Writes what became of replicas, and logs it. A report that Postgres refuses is an error of its route alone."""

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from uuid import UUID

import structlog
from psycopg import Connection
from sqlalchemy import Engine

from db.replicas.host_routes import RouteRow
from db.replicas.reports import ReportedRoute, RouteReport, record_reports
from db.unreachable import AWAY
from domain.model.states import RouteStatus
from domain.replicas.drain import killed_in_words
from domain.text.storable import storable
from tasks.cycle.change_and_wake import change_and_wake
from tasks.cycle.coordinator import in_halves
from tasks.redis.wake import Waker

_log = structlog.get_logger(__name__)


def write_reports(engine: Engine, waker: Waker, reports: Sequence[RouteReport]) -> None:
    """Write them together; when that is refused, in halves, down to the one that is bad.

    Raises what Postgres raises when it is away: then no report is to blame, and the next look makes the same ones.
    """
    if not reports:
        return
    write = partial(_write, engine, waker)
    try:
        write(reports)
    except AWAY:
        raise
    except Exception as error:  # noqa: BLE001  (Postgres refused: find out which report it is)
        _log.warning("reports refused, trying halves", size=len(reports), error=_first_line(error))
        in_halves(reports, error, write, partial(_blame, engine, waker))


def _write(engine: Engine, waker: Waker, reports: Sequence[RouteReport]) -> None:
    became: list[ReportedRoute] = []

    def work(connection: Connection) -> frozenset[UUID]:
        became[:] = record_reports(connection, reports)
        return frozenset(route.deployment_id for route in became)

    change_and_wake(engine, waker, work)
    log_reported(became)


def _blame(engine: Engine, waker: Waker, report: RouteReport, error: Exception) -> None:
    """The route fails, with the refusal as its reason; so its replica is replaced, and the next look continues."""
    if isinstance(error, AWAY):
        raise error
    fault = f"{type(error).__name__}: {_first_line(error)}"
    _log.error("report refused", route=str(report.route_id), error=fault)
    reason = storable(f"what became of it cannot be written: {fault}")
    failed = RouteReport(report.route_id, report.deployment_id, report.was, RouteStatus.FAILED, reason=reason)
    try:
        _write(engine, waker, [failed])
    except Exception as again:  # noqa: BLE001  (whatever it is, it must not reach other reports)
        _log.error("route not failed", route=str(report.route_id), error=_first_line(again))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


_LEVELS = {RouteStatus.FAILED.value: logging.WARNING, RouteStatus.UNHEALTHY.value: logging.WARNING}


def log_reported(routes: Iterable[ReportedRoute]) -> None:
    """Log what became of them, once it is committed."""
    for route in routes:
        _log.log(
            _LEVELS.get(route.status, logging.INFO),
            "replica",
            deployment=route.deployment,
            revision=route.revision,
            rollout=str(route.rollout_id) if route.rollout_id else None,
            route=str(route.id),
            host=route.host,
            **{"from": route.was, "to": route.status},
            reason=route.reason,
        )


def log_killed(route: RouteRow, host: str) -> None:
    """A replica that did not end in its time: the answers that it was giving are cut."""
    reason = killed_in_words(route.spec.stop_grace_seconds)
    _log.warning("replica", **_of(route, host), to="killed", reason=reason)


def log_gone(routes: Iterable[RouteRow], host: str) -> None:
    """Replicas that are known to run no more are told."""
    for route in routes:
        _log.info("replica", **_of(route, host), to="gone", reason="its process has ended")


def _of(route: RouteRow, host: str) -> dict[str, object]:
    return {
        "deployment": route.deployment,
        "revision": route.revision,
        "route": str(route.id),
        "host": host,
        "from": route.status.value,
    }
