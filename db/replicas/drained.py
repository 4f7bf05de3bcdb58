"""Hosts that a person empties, and those of their deployments that no other host takes."""

from psycopg import Connection

from db.locking.locked import mark_unheld
from db.locking.statuses import ACTIVE, IS_MISPLACED
from db.replicas.hosts import values
from domain.replicas.host_liveness import HostNotFoundError

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
    SELECT d.name FROM deployments d WHERE {_HERE_IF.format(f"r.{ACTIVE} AND NOT {IS_MISPLACED}")} ORDER BY d.name
"""


def drain_host(connection: Connection, name: str, actor: str) -> tuple[int, list[str]]:
    """Empty the host from now on; returns how many deployments have replicas there, and those that stay.

    They stay that no other host takes: it is the only one, or the only one with their secrets. Raises
    HostNotFoundError.
    """
    _write(connection, name, _DRAIN, (actor, name))
    return len(values(connection, _DEPLOYMENTS, {"host": name})), values(connection, _STAY, {"host": name})


def undrain_host(connection: Connection, name: str) -> None:
    """Let the host have replicas again. Raises HostNotFoundError."""
    _write(connection, name, _UNDRAIN, (name,))


def _write(connection: Connection, name: str, statement: str, parameters: tuple[str, ...]) -> None:
    if not connection.execute(statement, parameters).rowcount:
        raise HostNotFoundError(f"there is no host {name}; 'rollway hosts' lists those that exist", host=name)
    mark_unheld(connection, _HERE, {"host": name})
