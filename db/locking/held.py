"""Who holds the row of a deployment: its last locker, where that transaction is still under way."""

from collections.abc import Sequence

from psycopg import Connection

from domain.steering.held import HeldError, Holder, refusal

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
    """What a command is refused with that has waited for a row in vain. `names`: the deployments that it is about."""
    return refusal(*holder_of(connection, names))
