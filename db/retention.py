"""Cuts the past: the rule of `domain.installation.settings.Retention` in SQL, and the cut in small transactions."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, scalar_row
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.locking.row_locks import lock_unheld
from db.locking.statuses import GONE
from domain.installation.settings import Retention


def _older(column: str, days: str) -> str:
    return f"{column} < statement_timestamp() - make_interval(secs => %({days})s * 86400)"


_IS_GONE = f"(d.lifecycle = 'destroyed' AND {_older('d.phase_started_at', 'destroyed_days')})"
"""The rows of the deployment are no longer kept."""


def _of_each_deployment(cut: str) -> str:
    return f"SELECT cut.id, d.id AS deployment_id FROM deployments d, LATERAL ({cut}) cut WHERE d.id = ANY(%(ids)s)"


def _is_past(table: str, age: str, order: str, only: str, kind: str) -> str:
    """Older than its days, and older than the newest rows of its deployment; all is of one that is gone."""
    return f"""
        ({_IS_GONE} OR ({_older(f"x.{age}", f"{kind}_days")} AND x.{order} < (
            SELECT min(newest.{order})
              FROM (SELECT n.{order} FROM {table} n WHERE n.deployment_id = d.id AND {only}
                     ORDER BY n.{order} DESC LIMIT %({kind}_count)s) newest)))
    """


# Each query gives `id` and `deployment_id` of rows of the deployments %(ids)s, the oldest first, at most %(limit)s of
# each deployment. Its other parameters are called as the fields of `Retention` are. A query over the old and the newest
# rows of a deployment reads both from one end of an index, and nothing in between.
HISTORY = _of_each_deployment(f"""
    SELECT x.id FROM deployment_history x
     WHERE x.deployment_id = d.id AND {_is_past("deployment_history", "updated_at", "updated_at", "true", "history")}
       AND ({_IS_GONE} OR x.id IS DISTINCT FROM d.history_id)
       AND (d.rollout_id IS NULL OR x.rollout_id IS DISTINCT FROM d.rollout_id)
     ORDER BY x.updated_at LIMIT %(limit)s
""")

ROUTES = _of_each_deployment(f"""
    SELECT x.id FROM routes x
     WHERE x.deployment_id = d.id AND x.{GONE} AND x.stopped_at IS NOT NULL
       AND {_is_past("routes", "stopped_at", "created_at", f"n.{GONE}", "routes")}
       AND (d.rollout_id IS NULL OR x.rollout_id IS DISTINCT FROM d.rollout_id)
     ORDER BY x.created_at LIMIT %(limit)s
""")

# `back`: the rollouts along which a way back leads
ROLLOUTS = _of_each_deployment(f"""
    WITH back AS (
        (SELECT n.id, n.from_revision_id, n.to_revision_id FROM rollouts n
          WHERE n.deployment_id = d.id AND n.outcome = 'completed'
          ORDER BY n.started_at DESC LIMIT %(rollouts_count)s)
        UNION
        (SELECT n.id, n.from_revision_id, n.to_revision_id FROM rollouts n
          WHERE n.to_revision_id = d.current_revision_id AND n.outcome = 'completed'
          ORDER BY n.ended_at DESC LIMIT 1)
    )
    SELECT x.id FROM rollouts x
     WHERE x.deployment_id = d.id AND x.ended_at IS NOT NULL
       AND {_is_past("rollouts", "ended_at", "started_at", "true", "rollouts")}
       AND ({_IS_GONE} OR NOT EXISTS (
            SELECT FROM back
             WHERE back.id = x.id
                OR (x.to_revision_id IN (back.from_revision_id, back.to_revision_id)
                    AND NOT EXISTS (SELECT FROM rollouts later
                                     WHERE later.to_revision_id = x.to_revision_id
                                       AND later.started_at > x.started_at))))
       AND NOT EXISTS (SELECT FROM routes r WHERE r.rollout_id = x.id)
       AND NOT EXISTS (SELECT FROM deployment_history h WHERE h.rollout_id = x.id)
     ORDER BY x.started_at LIMIT %(limit)s
""")

REVISIONS = _of_each_deployment(f"""
    SELECT x.id FROM revisions x
     WHERE x.deployment_id = d.id AND {_is_past("revisions", "created_at", "created_at", "true", "revisions")}
       AND x.id IS DISTINCT FROM d.current_revision_id AND x.id IS DISTINCT FROM d.deploying_revision_id
       AND x.id IS DISTINCT FROM d.failed_revision_id
       AND NOT EXISTS (SELECT FROM rollouts o WHERE o.from_revision_id = x.id)
       AND NOT EXISTS (SELECT FROM rollouts o WHERE o.to_revision_id = x.id)
       AND NOT EXISTS (SELECT FROM routes r WHERE r.revision_id = x.id)
     ORDER BY x.created_at LIMIT %(limit)s
""")

# with the revisions that its own row names
DESTROYED = f"""
    SELECT d.id, d.id AS deployment_id FROM deployments d
     WHERE d.id = ANY(%(ids)s) AND {_IS_GONE}
       AND NOT EXISTS (SELECT FROM deployment_history h WHERE h.deployment_id = d.id)
       AND NOT EXISTS (SELECT FROM routes r WHERE r.deployment_id = d.id)
       AND NOT EXISTS (SELECT FROM rollouts o WHERE o.deployment_id = d.id)
"""

COMMANDS = f"""
    SELECT request_id AS id FROM commands WHERE {_older("created_at", "commands_days")} ORDER BY created_at
"""

FLEET_HISTORY = f"""
    SELECT id FROM fleet_history
     WHERE {_older("created_at", "history_days")} AND created_at < (
           SELECT min(created_at)
             FROM (SELECT created_at FROM fleet_history ORDER BY created_at DESC LIMIT %(history_count)s) newest)
     ORDER BY created_at
"""


_SIZES = """
    SELECT s.relname AS name, pg_total_relation_size(s.relid) AS bytes,
           CASE WHEN c.reltuples < 0 THEN s.n_live_tup ELSE c.reltuples::bigint END AS rows
      FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid
     WHERE s.schemaname = current_schema() ORDER BY 2 DESC, 1
"""
# ANALYZE counts rows whose session reports them afterwards: n_live_tup says them twice then, reltuples does not


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table, with its indexes. `rows`: as Postgres estimates them."""

    name: str
    rows: int
    bytes: int


def table_sizes(connection: Connection) -> list[TableSize]:
    """Every table, the biggest first."""
    return connection.cursor(row_factory=class_row(TableSize)).execute(_SIZES).fetchall()


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
_OF_NO_DEPLOYMENT = {"commands": ("request_id", COMMANDS), "fleet_history": ("id", FLEET_HISTORY)}
_COUNT_OF_NO_DEPLOYMENT = " UNION ALL ".join(
    f"SELECT '{table}', count(*) FROM ({past} LIMIT %(limit)s) past" for table, (_, past) in _OF_NO_DEPLOYMENT.items()
)
_MOST_COUNTED = 100_000

# an array, and a limit that is no parameter: a plan for any number of them reads the whole table
_CUT_OF_NO_DEPLOYMENT = {
    table: f"DELETE FROM {table} WHERE {key} = ANY(ARRAY({past} LIMIT {ROWS} FOR UPDATE SKIP LOCKED))"
    for table, (key, past) in _OF_NO_DEPLOYMENT.items()
}


@dataclass(frozen=True, slots=True)
class CutPage:
    """Some deployments that have something to cut, in the order of their ids. `last`: None at the end."""

    ids: tuple[UUID, ...]
    last: UUID | None


def page_of_past(connection: Connection, retention: Retention, after: UUID | None) -> CutPage:
    """The deployments behind `after` that have something to cut. Nothing is locked."""
    cursor = connection.cursor(row_factory=scalar_row)
    ids = cursor.execute(_IDS, {"after": after, "page": _PAGE}).fetchall()
    rows = cursor.execute(_HAVE_A_PAST, _parameters(retention, ids, 1)).fetchall() if ids else []
    return CutPage(tuple(rows), ids[-1] if len(ids) == _PAGE else None)


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
    rows = connection.execute(_COUNT, _parameters(retention, ids, ROWS)).fetchall()
    return Counter(dict(rows))


def fleet_rows_to_cut(connection: Connection, retention: Retention) -> Counter[str]:
    """Count the request ids and the records of the fleet's history that may go, 100,000 of each at most."""
    parameters = _parameters(retention, [], _MOST_COUNTED)
    return Counter(dict(connection.execute(_COUNT_OF_NO_DEPLOYMENT, parameters).fetchall()))


def cut_fleet_rows(connection: Connection, retention: Retention) -> Counter[str]:
    """Cut request ids and records of the fleet's history that are too old, ROWS of each at most; returns how many."""
    parameters = _parameters(retention, [], ROWS)
    return Counter(
        {table: connection.execute(cut, parameters).rowcount for table, cut in _CUT_OF_NO_DEPLOYMENT.items()}
    )


def _parameters(retention: Retention, ids: Sequence[UUID], limit: int) -> dict[str, Any]:
    return {**retention.model_dump(), "ids": list(ids), "limit": limit}


_BEFORE: LiteralString = "clock_timestamp() - make_interval(secs => %s * 86400)"

_ENDED: Mapping[str, LiteralString] = {
    "tokens": "DELETE FROM tokens WHERE expires_at < " + _BEFORE,
    "freezes": "DELETE FROM freezes WHERE ends_at < " + _BEFORE,
}
_LONG_DOWN: LiteralString = "SELECT name FROM hosts WHERE down_since < " + _BEFORE + " ORDER BY name LIMIT 10"


_UNSEALED: LiteralString = """
    UPDATE host_invitations SET sealed = '' WHERE ends_at < clock_timestamp() AND sealed <> ''
"""


def cut_ended(connection: Connection, retention: Retention) -> Counter[str]:
    """Cut tokens and freezes that ended long ago; returns how many of each. Sealed settings go as soon as they end."""
    connection.execute(_UNSEALED)
    return Counter({table: connection.execute(cut, (retention.ended_days,)).rowcount for table, cut in _ENDED.items()})


def hosts_long_down(connection: Connection, retention: Retention) -> list[str]:
    """Hosts that have been down for so long that they may be forgotten, some of them."""
    cursor = connection.cursor(row_factory=scalar_row)
    return cursor.execute(_LONG_DOWN, (retention.ended_days,)).fetchall()


def late_cuts(engine: Engine, retention: Retention, days: float) -> Iterator[str]:
    """The deployments whose past, and the rows of none, that should have been cut days ago. Page by page."""
    late = retention.model_copy(
        update={field: getattr(retention, field) + days for field in Retention.model_fields if field.endswith("_days")}
    )
    of_fleet = in_transaction(engine, partial(fleet_rows_to_cut, retention=late))
    for table, what in (("commands", "request ids"), ("fleet_history", "records of the fleet's history")):
        if count := of_fleet[table]:
            yield f"{count} {what} should have been cut more than {days:g} days ago"
    deployments, last = 0, None
    while True:
        page = in_transaction(engine, partial(page_of_past, retention=late, after=last))
        deployments += len(page.ids)
        if page.last is None:
            break
        last = page.last
    if deployments:
        yield f"the past of {deployments} deployments should have been cut more than {days:g} days ago"
