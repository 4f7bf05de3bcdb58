"""Keeps sick replicas that answer callers, as proxies told: those that answer no probe in time, and may be busy."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row

from db.connection.engine import database_now
from db.locking.locked import changed, lock_unheld
from db.locking.rows import columns
from domain.replicas.health import MOST_KEPT, RENEWED_BELOW, kept_until

_IS_LATE = "status = 'unhealthy' AND kept_until IS NOT NULL AND stopped_at IS NULL"
_LATE = f"SELECT id FROM routes WHERE {_IS_LATE}"

_DUE = f"""
    SELECT deployment_id, id, status_changed_at FROM routes
     WHERE id = ANY(%s) AND {_IS_LATE}
       AND kept_until < least(clock_timestamp() + %s, status_changed_at + %s)
     ORDER BY deployment_id, id
"""

_KEPT = columns("id uuid, until timestamptz")
_KEEP = f"UPDATE routes r SET kept_until = u.until FROM {_KEPT} WHERE r.id = u.id AND {_IS_LATE}"


def late_routes(connection: Connection[Any]) -> list[UUID]:
    """The sick routes whose replicas answered no probe in time."""
    return connection.cursor(row_factory=scalar_row).execute(_LATE).fetchall()


def keep_answering(connection: Connection[Any], route_ids: Collection[UUID]) -> bool:
    """Keep these, which answer callers now. False where somebody held a deployment: then the next look keeps them."""
    now, are_kept = database_now(connection), True
    due: dict[UUID, list[tuple[UUID, Any]]] = {}
    for owner, route_id, found_sick_at in connection.execute(
        _DUE, (list(route_ids), RENEWED_BELOW, MOST_KEPT)
    ).fetchall():
        due.setdefault(owner, []).append((route_id, kept_until(found_sick_at, now)))
    for owner, kept in due.items():
        if lock_unheld(connection, owner):
            connection.execute(_KEEP, _KEPT.arrays(kept))
            changed(connection, [owner])
        else:
            are_kept = False
    return are_kept
