"""The cut: what may go of one deployment, in one small transaction, and request ids that are too old."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row

from db.locking.locked import lock_unheld
from db.retention.rules import COMMANDS, DESTROYED, HISTORY, REVISIONS, ROLLOUTS, ROUTES
from domain.installation.settings import Retention

ROWS = 500
"""Rows of a table that one transaction cuts at most: some milliseconds."""
_ROLLOUTS = 20
"""Rollouts that one transaction cuts at most: each with all of its steps."""
_PAGE = 50

_IDS = """
    SELECT d.id FROM deployments d WHERE %(after)s::uuid IS NULL OR d.id > %(after)s ORDER BY d.id LIMIT %(page)s
"""

_PASTS: Mapping[str, str] = {
    "deployment_history": HISTORY,
    "routes": ROUTES,
    "rollouts": ROLLOUTS,
    "revisions": REVISIONS,
    "deployments": DESTROYED,
}
_ALL_PASTS = " UNION ALL ".join(f"({past})" for past in _PASTS.values())
_HAVE_A_PAST = f"SELECT DISTINCT deployment_id FROM ({_ALL_PASTS}) past ORDER BY deployment_id"

# what others refer to goes after them; each row's foreign keys are looked at when its statement ends
_CUTS: Mapping[str, str] = {
    "deployment_history": f"DELETE FROM deployment_history WHERE id IN (SELECT id FROM ({HISTORY}) past)",
    "routes": f"DELETE FROM routes WHERE id IN (SELECT id FROM ({ROUTES}) past)",
    "rollouts": f"""
        WITH past AS MATERIALIZED ({ROLLOUTS}),
             steps AS (DELETE FROM rollout_steps WHERE rollout_id IN (SELECT id FROM past))
        DELETE FROM rollouts WHERE id IN (SELECT id FROM past)
    """,
    "revisions": f"DELETE FROM revisions WHERE id IN (SELECT id FROM ({REVISIONS}) past)",
    "deployments": f"""
        WITH past AS MATERIALIZED ({DESTROYED}),
             policy AS (DELETE FROM policies WHERE deployment_id IN (SELECT id FROM past)),
             rules AS (DELETE FROM autoscaling_rules WHERE deployment_id IN (SELECT id FROM past)),
             receipts AS (DELETE FROM receipts WHERE deployment_id IN (SELECT id FROM past)),
             values AS (DELETE FROM metric_values WHERE deployment_id IN (SELECT id FROM past)),
             reached AS (DELETE FROM entrances WHERE deployment_id IN (SELECT id FROM past)),
             named AS (DELETE FROM revisions WHERE deployment_id IN (SELECT id FROM past))
        DELETE FROM deployments WHERE id IN (SELECT id FROM past)
    """,
}

_COUNT = " UNION ALL ".join(f"SELECT '{table}', count(*) FROM ({past}) past" for table, past in _PASTS.items())
_COUNT_COMMANDS = f"SELECT count(*) FROM ({COMMANDS} LIMIT %(limit)s) past"
_MOST_COUNTED = 100_000

# an array, and a limit that is no parameter: a plan for any number of them reads the whole table
_CUT_COMMANDS = f"DELETE FROM commands WHERE request_id = ANY(ARRAY({COMMANDS} LIMIT {ROWS} FOR UPDATE SKIP LOCKED))"


@dataclass(frozen=True, slots=True)
class CutPage:
    """Some deployments that have something to cut, in the order of their ids. `last`: None at the end."""

    ids: tuple[UUID, ...]
    last: UUID | None


def page_of_past(connection: Connection, retention: Retention, after: UUID | None) -> CutPage:
    """The deployments behind `after` that have something to cut. Nothing is locked."""
    cursor = connection.cursor(row_factory=scalar_row)
    ids = cursor.execute(_IDS, {"after": after, "page": _PAGE}).fetchall()
    found = cursor.execute(_HAVE_A_PAST, _parameters(retention, ids, 1)).fetchall() if ids else []
    return CutPage(tuple(found), ids[-1] if len(ids) == _PAGE else None)


def cut_deployment(connection: Connection, retention: Retention, deployment_id: UUID) -> Counter[str]:
    """Cut what may go, at most ROWS of each table; nothing where somebody else holds the deployment.

    Returns how many rows of each table went, the steps of rollouts and what goes with a deployment not counted.
    """
    if not lock_unheld(connection, deployment_id):
        return Counter()
    many, few = (_parameters(retention, [deployment_id], limit) for limit in (ROWS, _ROLLOUTS))
    return Counter(
        {table: connection.execute(cut, few if table == "rollouts" else many).rowcount for table, cut in _CUTS.items()}
    )


def rows_to_cut(connection: Connection, retention: Retention, ids: Sequence[UUID]) -> Counter[str]:
    """Count the rows of each table that may go of these deployments, ROWS of each deployment counted at most."""
    counted = connection.execute(_COUNT, _parameters(retention, ids, ROWS)).fetchall()
    return Counter(dict(counted))


def commands_to_cut(connection: Connection, retention: Retention) -> int:
    """Count the request ids that may be forgotten, 100,000 at most."""
    ((count,),) = connection.execute(_COUNT_COMMANDS, _parameters(retention, [], _MOST_COUNTED)).fetchall()
    return int(count)


def cut_commands(connection: Connection, retention: Retention) -> int:
    """Forget request ids that are too old, at most ROWS of them; returns how many."""
    return connection.execute(_CUT_COMMANDS, _parameters(retention, [], ROWS)).rowcount


def _parameters(retention: Retention, ids: Sequence[UUID], limit: int) -> dict[str, Any]:
    return {**retention.model_dump(), "ids": list(ids), "limit": limit}
