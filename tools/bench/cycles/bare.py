"""The bare floor: the script of the floor on tables that hold the same rows and guard nothing.

Foreign keys, CHECKs, triggers and every index that the script does not read by are left out, and steps are empty.
What lies between this floor and the fair one is the price of the schema and of steps that can be decided again.
"""

import psycopg
from psycopg import sql

from tools.bench.cycles.floor import run_floor

_TABLES = ("deployments", "rollouts", "routes", "rollout_steps", "deployment_history")
_READ_BY = (
    "CREATE UNIQUE INDEX ON bare.deployments (id)",
    "CREATE INDEX ON bare.deployments (due_at) WHERE due_at IS NOT NULL",
    "CREATE UNIQUE INDEX ON bare.rollouts (id)",
    "CREATE UNIQUE INDEX ON bare.routes (id)",
    "CREATE INDEX ON bare.routes (deployment_id) WHERE status NOT IN ('terminated', 'failed')",
    "CREATE UNIQUE INDEX ON bare.deployment_history (id)",
)


def make_bare(connection: psycopg.Connection) -> None:
    """The tables, empty. The connection must be in autocommit, as everywhere here."""
    connection.execute("CREATE SCHEMA bare")
    for table in map(sql.Identifier, _TABLES):
        connection.execute(sql.SQL("CREATE TABLE bare.{0} (LIKE public.{0} INCLUDING DEFAULTS)").format(table))
    for statement in _READ_BY:
        connection.execute(statement)


def fill_bare(connection: psycopg.Connection) -> None:
    """The fleet of the guarded tables, with what is marked there."""
    for table in map(sql.Identifier, _TABLES):
        connection.execute(sql.SQL("TRUNCATE bare.{0}").format(table))
        connection.execute(sql.SQL("INSERT INTO bare.{0} SELECT * FROM public.{0}").format(table))
        connection.execute(sql.SQL("VACUUM ANALYZE bare.{0}").format(table))


def run_bare_floor(connection: psycopg.Connection, chunk: int) -> int:
    """Until nothing is due there; returns the deployments."""
    connection.execute("SET search_path TO bare")
    return run_floor(connection, chunk, "{}", "{}")
