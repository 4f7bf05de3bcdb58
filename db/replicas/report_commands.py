"""Carries out commands on replicas and hosts: reports from outside, and hosts that are drained or forgotten."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from psycopg import Connection

from db.locking.row_locks import mark_unheld
from db.locking.statuses import ACTIVE, ANOTHER_TAKES_IT
from db.replicas.host_placement import values
from db.replicas.host_routes import lock_route, record_stopped
from db.replicas.lost_hosts import forget_host
from db.replicas.reports import RouteReport, apply_reports
from domain.commands.base import Command
from domain.commands.replica_commands import DrainHost, ForgetHost, ReportRoute, UndrainHost
from domain.model.states import RouteStatus
from domain.replicas.host_choice import HostNotFoundError
from domain.replicas.status_reports import status_told
from domain.replicas.warm_up import is_held_back, words_at_first

_DRAIN = """
    UPDATE hosts SET drained_at = coalesce(drained_at, clock_timestamp()), drained_by = coalesce(drained_by, %s)
     WHERE name = %s
"""

_UNDRAIN = "UPDATE hosts SET drained_at = NULL, drained_by = NULL WHERE name = %s"

# as an array: Postgres would compare each deployment with the routes
_HERE_IF = (
    "d.id = ANY(ARRAY(SELECT r.deployment_id FROM routes r WHERE r.host = %(host)s AND r.stopped_at IS NULL AND {}))"
)
_HERE = _HERE_IF.format(f"r.{ACTIVE}")

_DEPLOYMENTS = f"SELECT d.name FROM deployments d WHERE {_HERE} ORDER BY d.name"

_STAY = f"""
    SELECT d.name FROM deployments d WHERE {_HERE_IF.format(f"r.{ACTIVE} AND NOT {ANOTHER_TAKES_IT}")} ORDER BY d.name
"""


def drain_host(connection: Connection, name: str, actor: str) -> tuple[int, list[str]]:
    """Empty the host from now on; returns how many deployments have replicas there, and those that stay.

    They stay that no other host takes: it is the only one, or the only one with their secrets. Raises
    HostNotFoundError.
    """
    _write(connection, name, _DRAIN, (actor, name))
    return on_host(connection, name)


def on_host(connection: Connection, name: str) -> tuple[int, list[str]]:
    """The number of deployments with replicas on the host, and those that no other host takes."""
    return len(values(connection, _DEPLOYMENTS, {"host": name})), values(connection, _STAY, {"host": name})


def undrain_host(connection: Connection, name: str) -> None:
    """Let the host have replicas again. Raises HostNotFoundError."""
    _write(connection, name, _UNDRAIN, (name,))


def _write(connection: Connection, name: str, statement: str, parameters: tuple[str, ...]) -> None:
    if not connection.execute(statement, parameters).rowcount:
        raise HostNotFoundError(f"there is no host {name}; 'rollway hosts' lists those that exist", host=name)
    mark_unheld(connection, _HERE, {"host": name})


def _report_route(connection: Connection, command: ReportRoute) -> dict[str, Any]:
    row = lock_route(connection, command.route_id)
    status = status_told(command.status, row.spec.runtime, row.address or command.address)
    detail = command.detail or f"reported {command.status} by {command.actor}"
    report = RouteReport(row.id, row.deployment_id, row.status, status, reason=detail, address=command.address)
    is_well_or_ill = status in (RouteStatus.HEALTHY, RouteStatus.UNHEALTHY)
    sleeps = row.asleep_at is not None and is_well_or_ill
    held_back = sleeps or is_held_back(row.spec.warm_up, row.status, status, row.warmed_at)
    begins = held_back and not sleeps and status is RouteStatus.HEALTHY
    if held_back:
        reason = detail if not begins else None if row.warm_up_started_at else words_at_first(row.spec.warm_up)
        report = replace(report, status=row.status, reason=reason, begins_warm_up=begins)
    applied = apply_reports(connection, [report]) or frozenset({row.deployment_id} if begins else ())
    if command.status == "stopped":
        applied |= record_stopped(connection, [row.id])
    return {"deployment": row.deployment, "route": str(row.id), "status": command.status, "applied": bool(applied)}


def _forget_host(connection: Connection, command: ForgetHost) -> dict[str, Any]:
    touched = forget_host(connection, command.host)
    return {"host": command.host, "deployments": len(touched)}


def _drain_host(connection: Connection, command: DrainHost) -> dict[str, Any]:
    deployments, stay = drain_host(connection, command.host, command.actor)
    return {"host": command.host, "deployments": deployments, "stay": stay}


def _undrain_host(connection: Connection, command: UndrainHost) -> dict[str, Any]:
    undrain_host(connection, command.host)
    return {"host": command.host}


EFFECTS: dict[type[Command], Callable[[Connection, Any], dict[str, Any]]] = {
    ForgetHost: _forget_host,
    DrainHost: _drain_host,
    UndrainHost: _undrain_host,
    ReportRoute: _report_route,
}
