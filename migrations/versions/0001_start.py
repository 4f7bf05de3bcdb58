"""the first schema: every table, and the triggers that hold the budgets"""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TABLES = (
    "commands",
    "installation",
    "publishers",
    "hosts",
    "proxies",
    "metric_values",
    "autoscaling_rules",
    "entrances",
    "deployment_history",
    "rollout_steps",
    "routes",
    "rollouts",
    "policies",
    "revisions",
    "deployments",
)


_UUIDV7 = """
    CREATE FUNCTION uuidv7() RETURNS uuid LANGUAGE sql VOLATILE PARALLEL SAFE AS $$
        SELECT encode(overlay(overlay(uuid_send(gen_random_uuid())
                   PLACING substring(int8send(us / 1000) FROM 3) FROM 1 FOR 6)
                   PLACING substring(int4send((28672 + us % 1000 * 4096 / 1000)::int) FROM 3) FROM 7 FOR 2), 'hex')::uuid
          FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) now (us)
    $$
"""
"""What PostgreSQL has itself from 18 on: ids in the order of their time."""


def upgrade() -> None:
    if not _has_uuidv7():
        op.execute(_UUIDV7)
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text(encoding="utf-8"))


def downgrade() -> None:
    op.execute(f"DROP TABLE {', '.join(_TABLES)} CASCADE")  # revisions, rollouts and deployments name each other
    op.execute("DROP FUNCTION routes_within_ceiling, routes_above_floor")
    if not _has_uuidv7():
        op.execute("DROP FUNCTION uuidv7")


def _has_uuidv7() -> bool:
    """Whether PostgreSQL has it itself: from 18 on."""
    version = op.get_bind().dialect.server_version_info
    return version is None or version >= (18,)
