"""Fleets made from a seed: the same seed gives the same ids, names, pictures and ages, on whatever machine."""

import random
from collections.abc import Sequence

import psycopg

MUTATING = ("■■■|", "-■■|■", "--■|■■")
"""The cycles that create one and drain one, for 3 replicas with a surge of 1 and 1 unavailable."""
WAITING = ("■■~|◇", "-■~|■◇", "--~|■■◇")
"""The waits that follow them: one starts, one is on its way out, those before it are gone."""
QUIET = ("|■■■",)
"""Ready, with nothing to do."""

_EMPTY = """
    TRUNCATE deployments, revisions, policies, routes, rollouts, rollout_steps, deployment_history, metric_values
        CASCADE
"""

# ids count up as those of a grown fleet do: what was made together lies together in the indexes
_NTH = """
    CREATE OR REPLACE FUNCTION pg_temp.nth(kind text, number bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
        SELECT (lpad(to_hex(number), 12, '0') || '7' || right(md5(kind || number), 19))::uuid
    $$
"""

_FLEET = """
    CREATE TEMP TABLE fleet ON COMMIT DROP AS
    SELECT n, pg_temp.nth('deployment', n) AS id, pg_temp.nth('v1', n) AS v1, pg_temp.nth('v2', n) AS v2,
           pg_temp.nth('rollout', n) AS rollout, picture NOT LIKE '|%%' AS deploying,
           split_part(picture, '|', 1) AS old, split_part(picture, '|', 2) AS new,
           now() - age * interval '1 second' AS at
      FROM unnest(%s::text[], %s::int[]) WITH ORDINALITY AS f (picture, age, n)
"""

_DEPLOYMENTS = """
    INSERT INTO deployments (id, name, desired_replicas, created_at) SELECT id, 'service-' || n, 3, at FROM fleet
"""

_REVISIONS = """
    INSERT INTO revisions (id, deployment_id, name, spec, created_at)
    SELECT v.id, f.id, v.name, '{"command": ["sleep", "60"]}', at
      FROM fleet f, LATERAL (VALUES (f.v1, 'v1'), (f.v2, 'v2')) v (id, name)
"""

_ROLLOUTS = """
    INSERT INTO rollouts (id, deployment_id, from_revision_id, to_revision_id, strategy, spec, limits, desired_at_start,
                          ceiling, floor, actor, reason, deadline, started_at, last_progress_at, steps)
    SELECT rollout, id, v1, v2, 'rolling_update',
           '{"max_surge": 1, "max_unavailable": 1, "pacing": "wave", "min_ready_seconds": 0}',
           '{"timeout_seconds": 86400, "failure_budget": null, "progress_timeout_seconds": null}', 3, 4, 2,
           'bench', 'seeded', now() + interval '1 day', now() - interval '1 minute', now() - interval '10 seconds',
           length(translate(old, '■|', ''))
      FROM fleet WHERE deploying
"""

_HISTORY = """
    INSERT INTO deployment_history (id, deployment_id, rollout_id, phase, result, target, actor, message, created_at)
    SELECT pg_temp.nth('history', n), id, CASE WHEN deploying THEN rollout END, 'deploying_provisioning', 'need_retry',
           'deploying/provisioning', 'deploying_provisioning', 'the step before', at
      FROM fleet
"""

_STATES = """
    UPDATE deployments d
       SET lifecycle = CASE WHEN deploying THEN 'deploying' ELSE 'ready' END,
           sub_step = CASE WHEN deploying THEN 'provisioning' END, rollout_id = CASE WHEN deploying THEN rollout END,
           current_revision_id = CASE WHEN deploying THEN v1 ELSE v2 END,
           deploying_revision_id = CASE WHEN deploying THEN v2 END,
           history_id = pg_temp.nth('history', n), phase_started_at = now() - interval '1 minute',
           -- a rollout's first step begins a record, the next one is one more attempt of it
           history_key = CASE WHEN deploying AND old LIKE '-%%' THEN
                              concat(rollout, ' deploying_provisioning need_retry - deploying/provisioning') END
      FROM fleet f WHERE f.id = d.id
"""

_ROUTES = """
    INSERT INTO routes (id, deployment_id, revision_id, rollout_id, status, traffic_status, address, started_at,
                        drain_started_at, stopped_at, created_at, status_changed_at)
    SELECT pg_temp.nth('route', 100 * n + r.place), f.id, r.revision, CASE WHEN f.deploying THEN f.rollout END,
           CASE r.drawn WHEN '■' THEN 'healthy' WHEN '◇' THEN 'provisioning' WHEN '~' THEN 'terminating'
                        ELSE 'terminated' END,
           CASE WHEN r.drawn IN ('■', '◇') THEN 'active' ELSE 'inactive' END,
           CASE WHEN r.drawn <> '◇' THEN '127.0.0.1:1' END, CASE WHEN r.drawn <> '◇' THEN at END,
           CASE WHEN r.drawn IN ('~', '-') THEN now() END, CASE WHEN r.drawn = '-' THEN now() END, at, at
      FROM fleet f,
           LATERAL (SELECT place, v1, drawn FROM regexp_split_to_table(f.old, '') WITH ORDINALITY o (drawn, place)
                     WHERE drawn <> ''
                    UNION ALL
                    SELECT 50 + place, v2, drawn FROM regexp_split_to_table(f.new, '') WITH ORDINALITY o (drawn, place)
                     WHERE drawn <> '') r (place, revision, drawn)
     ORDER BY f.n, r.place
"""


_GROW = """
    WITH more AS (
        INSERT INTO routes (deployment_id, revision_id, status, traffic_status, address, started_at)
        SELECT d.id, d.current_revision_id, 'healthy', 'active', '127.0.0.1:1', now()
          FROM deployments d, generate_series(4, %(replicas)s))
    UPDATE deployments SET desired_replicas = %(replicas)s
"""
_PAST = """
    CREATE TEMP TABLE past ON COMMIT DROP AS
    SELECT uuidv7(-age) AS rollout, v.deployment_id AS deployment, v.id AS before, d.current_revision_id AS revision, n,
           now() - age AS at
      FROM generate_series(1, %(rollouts)s) n, LATERAL (SELECT n * interval '2 years' / %(rollouts)s AS age) u,
           deployments d JOIN revisions v ON v.deployment_id = d.id AND v.id <> d.current_revision_id
     ORDER BY at
"""

_PAST_ROLLOUTS = """
    INSERT INTO rollouts (id, deployment_id, from_revision_id, to_revision_id, strategy, spec, limits, desired_at_start,
                          ceiling, floor, actor, reason, started_at, steps, outcome, ended_at, is_sealed)
    SELECT rollout, deployment, before, revision, 'rolling_update', '{}', '{}', 3, 4, 2, 'bench', '', at, 4,
           'completed', at, true FROM past
"""

_PAST_STEPS = """
    INSERT INTO rollout_steps (rollout_id, step_no, phase, at, verdict, inputs, decision)
    SELECT rollout, step, 'deploying_provisioning', at, 'success', jsonb_build_object('text', repeat('step ', 200)),
           '{}'
      FROM past, generate_series(1, 4) step
"""

_PAST_RECORDS = """
    INSERT INTO deployment_history (deployment_id, rollout_id, phase, result, target, actor, message, created_at,
                                    updated_at)
    SELECT deployment, rollout, 'deploying_provisioning', 'success', 'ready', 'bench', 'all run', at, at
      FROM past, generate_series(1, 3)
"""

_PAST_ROUTES = """
    INSERT INTO routes (deployment_id, revision_id, rollout_id, host, status, traffic_status, address, started_at,
                        created_at, status_changed_at, drain_started_at, stopped_at)
    SELECT deployment, revision, rollout, 'simulated', 'terminated', 'inactive', '127.0.0.1:1', at, at, at, at, at
      FROM past, generate_series(1, 3)
"""

_PAST_RECEIPTS = """
    INSERT INTO receipts (rollout_id, deployment_id, number, text, sha256)
    SELECT rollout, deployment, %(rollouts)s - n + 1, repeat('receipt ', 300), '' FROM past
"""


def fill(connection: psycopg.Connection, pictures: Sequence[str], count: int, seed: int = 1) -> None:
    """Empty the database and make `count` deployments, each with one of these pictures; nothing is marked.

    Left of the bar runs v1, right of it v2: ■ healthy ◇ provisioning ~ terminating - terminated. A left side is a
    rollout from v1 to v2. The connection must be in autocommit: at the end everything is vacuumed.
    """
    chance = random.Random(seed)
    drawn = [chance.choice(pictures) for _ in range(count)]
    ages = [chance.randrange(3600, 7 * 86400) for _ in range(count)]
    with connection.transaction():
        connection.execute(_EMPTY)
        connection.execute(_NTH)
        connection.execute(_FLEET, (drawn, ages))
        for statement in (_DEPLOYMENTS, _REVISIONS, _ROLLOUTS, _HISTORY, _STATES, _ROUTES):
            connection.execute(statement)
    connection.execute("VACUUM ANALYZE")


def place(connection: psycopg.Connection, hosts: Sequence[str]) -> None:
    """Every replica is on one of these hosts."""
    chosen = "(%(hosts)s::text[])[1 + (hashtext(id::text) & 65535) %% cardinality(%(hosts)s::text[])]"
    connection.execute(f"UPDATE routes SET host = {chosen}", {"hosts": list(hosts)})
    connection.execute("VACUUM ANALYZE routes")


def grow(connection: psycopg.Connection, replicas: int) -> None:
    """Each deployment has so many replicas, three of which it had before. No trigger may look at them."""
    connection.execute(_GROW, {"replicas": replicas})


def grow_old(connection: psycopg.Connection, rollouts: int) -> None:
    """Each deployment of the fleet has had so many rollouts within two years, and nothing of them was cut."""
    with connection.transaction():
        connection.execute("SET LOCAL session_replication_role = replica")
        for statement in (_PAST, _PAST_ROLLOUTS, _PAST_STEPS, _PAST_RECORDS, _PAST_ROUTES, _PAST_RECEIPTS):
            connection.execute(statement, {"rollouts": rollouts})
    connection.execute("VACUUM ANALYZE")


def mark_all(connection: psycopg.Connection) -> None:
    """Every deployment of the fleet is due."""
    connection.execute("UPDATE deployments SET due_at = clock_timestamp()")
