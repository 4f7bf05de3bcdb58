"""Begins and ends the maintenance of a deployment, in which proxies answer its callers themselves."""

from dataclasses import replace
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.commands.locked import lock_named, note, touch
from db.connection.engine import database_now
from domain.commands.deployment_commands import SetMaintenance
from domain.model.states import Lifecycle
from domain.text.errors import WrongStateError
from domain.traffic.maintenance import STORED, Maintenance, known_maintenance


def set_maintenance(connection: Connection, command: SetMaintenance) -> dict[str, Any]:
    """Begin it, change it, or end it. Raises WrongStateError, DeploymentNotFoundError and StaleVersionError.

    on, and it is on as it is asked for -> nothing to do
    on, and it is on                    -> it goes on since it began, as it is asked for now
    off, and there is none              -> nothing to do
    """
    deployment = lock_named(connection, command.deployment, command.expected_version)
    if deployment.status.lifecycle is Lifecycle.DESTROYING:
        raise WrongStateError.of_leaving(command.deployment, deployment.status, "its maintenance can be set")
    ((stored,),) = connection.execute("SELECT maintenance FROM deployments WHERE id = %s", (deployment.id,))
    before = known_maintenance(stored)
    wanted = _wanted(connection, command, before)
    already = wanted is None if before is None else wanted == before
    version = deployment.version
    if not already:
        value = None if wanted is None else Jsonb(STORED.dump_python(wanted, mode="json"))
        connection.execute("UPDATE deployments SET maintenance = %s WHERE id = %s", (value, deployment.id))
        note(connection, deployment.id, command, "set_maintenance", f"maintenance {command.state}")
        version = touch(connection, deployment)
    return {
        "deployment": command.deployment,
        "version": version,
        "state": command.state,
        "since": wanted.since.isoformat() if wanted else None,
        "already": already,
    }


def _wanted(connection: Connection, command: SetMaintenance, before: Maintenance | None) -> Maintenance | None:
    if command.state == "off":
        return None
    asked = Maintenance(
        since=before.since if before else database_now(connection),
        by=command.actor,
        reason=command.reason,
        page=command.page or "",
        allow=command.allow or "",
        retry_after_seconds=command.retry_after_seconds,
    )
    # who says the same once more has not begun it
    return before if before and replace(asked, by=before.by) == before else asked
