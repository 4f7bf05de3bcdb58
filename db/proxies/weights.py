"""The weights of canaries: which of them every live proxy knows, so that their time begins."""

from psycopg import Connection
from psycopg.rows import scalar_row

from db.locking.locked import changed, lock
from db.locking.statuses import IS_LIVE
from domain.model.states import Lifecycle

# no live proxy holds a table that was read before the weight was set
IS_KNOWN = f"""
    o.outcome IS NULL AND o.weight IS NOT NULL AND o.weight_known_at IS NULL
    AND NOT EXISTS (SELECT FROM proxies p
                     WHERE {IS_LIVE}
                       AND (p.acked_snapshot IS NULL OR NOT pg_visible_in_snapshot(o.weight_xid, p.acked_snapshot)))
"""

_OWNERS = f"SELECT o.deployment_id FROM rollouts o WHERE {IS_KNOWN}"

_NOTE = f"""
    UPDATE rollouts o SET weight_known_at = clock_timestamp() WHERE o.deployment_id = ANY(%s) AND {IS_KNOWN}
    RETURNING o.deployment_id
"""


def note_known_weights(connection: Connection) -> int:
    """Note which weights every live proxy knows, and mark their deployments; returns how many.

    Without a live proxy that is all of them: there is nothing to wait for.
    """
    owners = connection.cursor(row_factory=scalar_row).execute(_OWNERS).fetchall()
    if not owners:
        return 0
    lock(connection, owners)
    known = connection.cursor(row_factory=scalar_row).execute(_NOTE, (owners,)).fetchall()
    changed(connection, known, mark={Lifecycle.DEPLOYING})
    return len(known)
