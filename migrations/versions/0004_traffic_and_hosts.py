"""where deployments are reached, which proxies know what, and on which host a replica runs"""

import sqlalchemy as sa
from alembic import op

from db.types import PgSnapshot, Xid8

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("endpoints", sa.Column("request_timeout_seconds", sa.Float(), nullable=True))
    op.create_check_constraint(op.f("endpoints_request_timeout_check"), "endpoints", "request_timeout_seconds > 0")
    op.add_column("routes", sa.Column("host", sa.Text(), nullable=True))
    op.add_column("routes", sa.Column("drain_xid", Xid8(), nullable=True))
    op.add_column("routes", sa.Column("out_of_traffic_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index("routes_host_idx", "routes", ["host"], postgresql_where=sa.text("stopped_at IS NULL"))
    op.create_index(
        "routes_published_idx",
        "routes",
        ["endpoint_id"],
        postgresql_where=sa.text("status IN ('healthy', 'unhealthy', 'degraded')"),
    )
    op.create_index(
        "routes_draining_idx",
        "routes",
        ["drain_started_at"],
        postgresql_where=sa.text("status = 'terminating' AND out_of_traffic_at IS NULL"),
    )
    op.create_table(
        "entrances",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("strip_prefix", sa.Boolean(), server_default="true", nullable=False),
        sa.CheckConstraint("kind IN ('host', 'prefix')", name=op.f("entrances_kind_check")),
        sa.ForeignKeyConstraint(["endpoint_id"], ["endpoints.id"], name=op.f("entrances_endpoint_id_fkey")),
        sa.PrimaryKeyConstraint("kind", "value", name=op.f("entrances_pkey")),
    )
    op.create_index("entrances_endpoint_id_idx", "entrances", ["endpoint_id"])
    op.create_table(
        "proxies",
        sa.Column("node_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("silence_seconds", sa.Float(), nullable=False),
        sa.Column("acked_version", sa.Text(), nullable=True),
        sa.Column("acked_snapshot", PgSnapshot(), nullable=True),
        sa.Column("acked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "first_seen_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "last_seen_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("silence_seconds > 0", name=op.f("proxies_silence_seconds_check")),
        sa.PrimaryKeyConstraint("node_id", name=op.f("proxies_pkey")),
    )
    op.create_table(
        "publishers",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("publishers_pkey")),
    )
    op.create_table(
        "hosts",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column(
            "last_seen_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("silent_looks", sa.Integer(), server_default="0", nullable=False),
        sa.Column("down_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "registered_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("silent_looks >= 0", name=op.f("hosts_silent_looks_check")),
        sa.PrimaryKeyConstraint("name", name=op.f("hosts_pkey")),
    )
    op.execute(
        """
        INSERT INTO entrances (kind, value, endpoint_id)
        SELECT kind, value, e.id
          FROM endpoints e
         CROSS JOIN LATERAL (
            VALUES ('host', e.name), ('host', e.name || '.localhost'), ('prefix', '/' || e.name || '/')
         ) AS reached (kind, value)
         WHERE e.lifecycle <> 'destroyed'
            ON CONFLICT DO NOTHING
        """
    )


def downgrade() -> None:
    for table in ("hosts", "publishers", "proxies", "entrances"):
        op.drop_table(table)
    for index in ("routes_draining_idx", "routes_published_idx", "routes_host_idx"):
        op.drop_index(index, table_name="routes")
    for column in ("out_of_traffic_at", "drain_xid", "host"):
        op.drop_column("routes", column)
    op.drop_column("endpoints", "request_timeout_seconds")
