"""A fleet of 10,000 deployments with a past of two years, written by Postgres itself in some seconds.

The n-th row of a table is of deployment n modulo 10,000, called shop-n: the rows of a deployment are as far from each
other as after two years. The first thirty deployments are in a rollout, the last ten are destroyed.
"""

from typing import LiteralString

from psycopg import Connection

_IDS: LiteralString = """
    CREATE FUNCTION pg_temp.id(kind int, n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE
        AS $$ SELECT (lpad(to_hex(kind), 8, '0') || lpad(to_hex(n), 24, '0'))::uuid $$
"""

_ROWS: tuple[LiteralString, ...] = (
    """
    INSERT INTO hosts (name, address) SELECT concat('rack-', n), '127.0.0.1' FROM generate_series(1, 300) n
    """,
    """
    INSERT INTO deployments (id, name, desired_replicas, lifecycle, sub_step, current_revision_id,
                             deploying_revision_id, rollout_id, due_at, created_at)
    SELECT pg_temp.id(1, n), concat('shop-', n), 3, state,
           CASE state WHEN 'deploying' THEN 'provisioning' END, pg_temp.id(2, n + 20000),
           CASE state WHEN 'deploying' THEN pg_temp.id(2, n + 30000) END,
           CASE state WHEN 'deploying' THEN pg_temp.id(3, n + 60000) END,
           CASE state WHEN 'deploying' THEN now() + interval '10 minutes' END, now() - interval '2 years'
      FROM (SELECT n, CASE WHEN n < 30 THEN 'deploying' WHEN n < 9990 THEN 'ready' ELSE 'destroyed' END AS state
              FROM generate_series(0, 9999) n) u
    """,
    """
    INSERT INTO policies (deployment_id, strategy, spec, limits)
    SELECT id, 'rolling_update', '{}', '{}' FROM deployments
    """,
    """
    INSERT INTO revisions (id, deployment_id, name, spec, created_at)
    SELECT pg_temp.id(2, n), pg_temp.id(1, n % 10000), concat('v', n / 10000), '{"command": ["serve"]}',
           now() - interval '2 years' + n * interval '20 minutes'
      FROM generate_series(0, 39999) n
    """,
    """
    INSERT INTO rollouts (id, deployment_id, from_revision_id, to_revision_id, strategy, spec, limits,
                          desired_at_start, ceiling, floor, actor, reason, started_at, steps, outcome, ended_at,
                          is_sealed, unanswered)
    SELECT pg_temp.id(3, n), pg_temp.id(1, n % 10000), pg_temp.id(2, n % 20000), pg_temp.id(2, n % 20000 + 10000),
           'rolling_update', '{}', '{}', 3, 4, 3, 'ci', '', at, CASE WHEN n < 60000 THEN 2 ELSE 0 END,
           CASE WHEN n < 60000 THEN 'completed' END, CASE WHEN n < 60000 THEN at END, n < 60000,
           CASE WHEN n < 60000 THEN NULL ELSE 0 END
      FROM generate_series(0, 60029) n, LATERAL (SELECT now() - (60000 - n) * interval '17 minutes' AS at) u
    """,
    """
    INSERT INTO rollout_steps (rollout_id, step_no, phase, at, verdict, inputs, decision)
    SELECT id, step, 'x', started_at, 'success', '{}', '{}' FROM rollouts, generate_series(1, 2) step
     WHERE started_at < now() - interval '1 year'
    """,
    """
    INSERT INTO receipts (rollout_id, deployment_id, number, text, sha256)
    SELECT pg_temp.id(3, n), pg_temp.id(1, n % 10000), 1 + n / 10000, '{}', '' FROM generate_series(0, 59999) n
    """,
    """
    INSERT INTO deployment_history (id, deployment_id, rollout_id, phase, result, target, actor, message, updated_at)
    SELECT pg_temp.id(5, n), pg_temp.id(1, n % 10000), pg_temp.id(3, n % 60000), 'x', 'success', 'ready', 'ann', 'seen',
           now() - (80000 - n) * interval '13 minutes'
      FROM generate_series(0, 79999) n
    """,
    """
    INSERT INTO routes (id, deployment_id, revision_id, rollout_id, host, status, traffic_status, address, started_at,
                        healthy_at, created_at, drain_started_at, stop_requested_at, stopped_at)
    SELECT pg_temp.id(4, n), pg_temp.id(1, n % 10000), pg_temp.id(2, 20000 + n % 10000), pg_temp.id(3, n % 60000),
           concat('rack-', 1 + n % 300), CASE WHEN gone THEN 'terminated' ELSE 'healthy' END,
           CASE WHEN gone THEN 'inactive' ELSE 'active' END, '127.0.0.1:1', at, at, at,
           CASE WHEN gone THEN at END, CASE WHEN gone THEN at END, CASE WHEN gone THEN at END
      FROM (SELECT n, n < 50000 OR n % 10000 >= 9990 AS gone, now() - (80000 - n) * interval '13 minutes' AS at
              FROM generate_series(0, 79999) n) u
    """,
    """
    INSERT INTO commands (request_id, name, payload, actor, created_at)
    SELECT concat('request-', n), 'x', '{}', 'ci', now() - n * interval '10 seconds' FROM generate_series(1, 40000) n
    """,
    """
    INSERT INTO entrances (kind, value, deployment_id)
    SELECT 'host', concat(name, '.example.com'), id FROM deployments WHERE lifecycle <> 'destroyed'
    """,
)

GROWING = frozenset(row.split()[2] for row in _ROWS) - {"hosts"}
"""The tables that grow with the fleet or with time."""


def fill(connection: Connection) -> None:
    """The connection must be at the beginning of a transaction."""
    connection.execute("SET LOCAL session_replication_role = replica")
    connection.execute("SET LOCAL synchronous_commit = off")
    connection.execute(_IDS)
    for rows in _ROWS:
        connection.execute(rows)
