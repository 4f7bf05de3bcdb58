"""Carries out what people and external services tell of replicas and hosts."""

from collections.abc import Callable
from typing import Any

from psycopg import Connection

from db.replicas.drained import drain_host, undrain_host
from db.replicas.lost import forget_host
from db.replicas.reports import RouteReport, apply_reports
from db.replicas.routes import lock_route, record_stopped
from domain.commands.base import Command
from domain.commands.replica_commands import DrainHost, ForgetHost, ReportRoute, UndrainHost
from domain.replicas.status_reports import status_told


def _report_route(connection: Connection, command: ReportRoute) -> dict[str, Any]:
    row = lock_route(connection, command.route_id)
    status = status_told(command.status, row.spec.runtime, row.address or command.address)
    detail = command.detail or f"reported {command.status} by {command.actor}"
    report = RouteReport(row.id, row.deployment_id, row.status, status, reason=detail, address=command.address)
    applied = apply_reports(connection, [report])
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
