"""Queries for the rows that may be cut: `domain.installation.settings.Retention` says the same in words.

Each gives `id` and `deployment_id` of rows of the deployments %(ids)s, the oldest first, at most %(limit)s of each.
Its other parameters are called as the fields of `Retention` are.
A query over the old and the newest rows of a deployment reads both from one end of an index, and nothing in between.
"""

from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import class_row

from db.locking.statuses import GONE


def _older(column: str, days: str) -> str:
    return f"{column} < statement_timestamp() - make_interval(secs => %({days})s * 86400)"


_IS_GONE = f"(d.lifecycle = 'destroyed' AND {_older('d.phase_started_at', 'destroyed_days')})"
"""Nothing of the deployment is kept any more."""


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
    SELECT request_id FROM commands WHERE {_older("created_at", "commands_days")} ORDER BY created_at
"""


_SIZES = """
    SELECT relname AS name, n_live_tup AS rows, pg_total_relation_size(relid) AS bytes
      FROM pg_stat_user_tables WHERE schemaname = current_schema() ORDER BY 3 DESC, 1
"""


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table, with its indexes. `rows`: as Postgres estimates them."""

    name: str
    rows: int
    bytes: int


def table_sizes(connection: Connection) -> list[TableSize]:
    """Every table, the biggest first."""
    return connection.cursor(row_factory=class_row(TableSize)).execute(_SIZES).fetchall()
