"""Carries out what people and external services tell of replicas and hosts."""

from collections.abc import Callable
from typing import Any

from psycopg import Connection

from db.replicas.lost import forget_host
from db.replicas.reports import RouteReport, apply_reports
from db.replicas.routes import lock_route, record_stopped
from domain.commands.base import Command
from domain.commands.replicas import ForgetHost, ReportRoute
from domain.replicas.reported import status_told


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


EFFECTS: dict[type[Command], Callable[[Connection, Any], dict[str, Any]]] = {
    ForgetHost: _forget_host,
    ReportRoute: _report_route,
}
