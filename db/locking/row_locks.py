"""The law of every write: it locks the deployments before it changes them or their routes, and counts them up.

1. `lock(connection, ids)`: their rows, in the order of their ids, so that no two writers deadlock.
2. Read, decide and write: the writer is alone with these deployments until its transaction ends.
3. `count_change(connection, ids, mark=...)`: version + 1, and due_at = now for those that a handler must look at.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row

from domain.model.states import Lifecycle
from domain.steering.command_effect import HeldError, Holder, refusal

IN_ID_ORDER = "ORDER BY d.id FOR NO KEY UPDATE OF d"
"""The end of a query over `deployments d` that reads and locks in one statement."""

SKIPPING_HELD = "FOR NO KEY UPDATE OF d SKIP LOCKED"
"""Lock rows as above, but leave out those that somebody else holds."""

ALWAYS = frozenset(Lifecycle) - {Lifecycle.DESTROYED}
"""Every state that some handler looks at: to mark a destroyed deployment would mark it for ever."""

_LOCK = f"SELECT d.id FROM deployments d WHERE d.id = ANY(%s) {IN_ID_ORDER}"

_LOCK_UNHELD = f"SELECT d.id FROM deployments d WHERE d.id = %s {SKIPPING_HELD}"

_CHANGED = """
    UPDATE deployments
       SET version = version + 1, due_at = CASE WHEN lifecycle = ANY(%s) THEN clock_timestamp() ELSE due_at END
     WHERE id = ANY(%s)
"""


def lock(connection: Connection, ids: Collection[UUID]) -> None:
    """Hold these deployments until the transaction ends; waits for other transactions that hold one."""
    connection.execute(_LOCK, (list(ids),))


def lock_unheld(connection: Connection, deployment_id: UUID) -> bool:
    """Hold this deployment until the transaction ends; False where somebody else holds it, or it is not there."""
    return connection.execute(_LOCK_UNHELD, (deployment_id,)).fetchone() is not None


def count_change(connection: Connection, ids: Collection[UUID], *, mark: Collection[Lifecycle] = ()) -> None:
    """Count up the versions of locked deployments, and mark those of them that are in one of the states of `mark`."""
    if ids:
        connection.execute(_CHANGED, ([state.value for state in mark], list(ids)))


def mark_unheld(connection: Connection, condition: str, parameters: Mapping[str, Any]) -> frozenset[UUID]:
    """Mark those of `deployments d` that the SQL `condition` is true of; returns those that were not marked before.

    A deployment that somebody holds is left out: its holder marks it, or looks at it just now. No version counts up.
    """
    query = f"""
        UPDATE deployments SET due_at = clock_timestamp()
         WHERE id IN (SELECT d.id FROM deployments d
                       WHERE (d.due_at IS NULL OR d.due_at > clock_timestamp()) AND {condition}
                       ORDER BY d.id {SKIPPING_HELD})
        RETURNING id
    """
    return frozenset(connection.cursor(row_factory=scalar_row).execute(query, parameters).fetchall())


# a session of another role hides all but its process
_HOLDER = """
    SELECT d.name, a.pid, nullif(a.application_name, ''), clock_timestamp() - a.xact_start
      FROM deployments d JOIN pg_locks l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = d.xmax
      LEFT JOIN pg_stat_activity a ON a.pid = l.pid
     WHERE d.name = ANY(%s) AND d.lifecycle <> 'destroyed' AND a.pid <> pg_backend_pid()
     ORDER BY a.xact_start LIMIT 1
"""


def holder_of(connection: Connection, names: Sequence[str]) -> tuple[str, Holder]:
    """The first of these deployments that somebody holds, and who; what is not known of the holder is None."""
    row = connection.execute(_HOLDER, (list(names),)).fetchone()
    return (row[0], Holder(*row[1:])) if row else (names[0] if names else "what this changes", Holder())


def refusal_of_held(connection: Connection, names: Sequence[str]) -> HeldError:
    """The refusal of a command that could not get a row. `names`: the deployments that it is about."""
    return refusal(*holder_of(connection, names))
