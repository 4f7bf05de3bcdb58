"""autoscaling rules and the values they read"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("endpoints", sa.Column("last_autoscaled_at", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "autoscaling_rules",
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("labels", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("aggregate", sa.Text(), nullable=False),
        sa.Column("comparator", sa.Text(), nullable=False),
        sa.Column("threshold", sa.Float(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("min_replicas", sa.Integer(), nullable=False),
        sa.Column("max_replicas", sa.Integer(), nullable=False),
        sa.Column("cooldown_seconds", sa.Float(), nullable=False),
        sa.Column("max_age_seconds", sa.Float(), nullable=False),
        sa.Column("series", sa.Text(), nullable=False),
        sa.CheckConstraint("source IN ('replicas', 'pushed')", name=op.f("autoscaling_rules_source_check")),
        sa.CheckConstraint("aggregate IN ('avg', 'sum', 'max', 'min')", name=op.f("autoscaling_rules_aggregate_check")),
        sa.CheckConstraint("comparator IN ('>', '>=', '<', '<=')", name=op.f("autoscaling_rules_comparator_check")),
        sa.CheckConstraint(
            "threshold NOT IN ('NaN', 'Infinity', '-Infinity')", name=op.f("autoscaling_rules_threshold_check")
        ),
        sa.CheckConstraint("step <> 0", name=op.f("autoscaling_rules_step_check")),
        sa.CheckConstraint(
            "0 <= min_replicas AND min_replicas <= max_replicas", name=op.f("autoscaling_rules_replicas_check")
        ),
        sa.CheckConstraint(
            "cooldown_seconds >= 0 AND max_age_seconds > 0", name=op.f("autoscaling_rules_seconds_check")
        ),
        sa.ForeignKeyConstraint(["endpoint_id"], ["endpoints.id"], name=op.f("autoscaling_rules_endpoint_id_fkey")),
        sa.PrimaryKeyConstraint("endpoint_id", "position", name=op.f("autoscaling_rules_pkey")),
    )
    op.create_table(
        "metric_values",
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("series", sa.Text(), nullable=False),
        sa.Column("value", sa.Float(), nullable=False),
        sa.Column("missing", sa.Integer(), server_default="0", nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.CheckConstraint("value NOT IN ('NaN', 'Infinity', '-Infinity')", name=op.f("metric_values_value_check")),
        sa.CheckConstraint("missing >= 0", name=op.f("metric_values_missing_check")),
        sa.ForeignKeyConstraint(["endpoint_id"], ["endpoints.id"], name=op.f("metric_values_endpoint_id_fkey")),
        sa.PrimaryKeyConstraint("endpoint_id", "series", name=op.f("metric_values_pkey")),
    )


def downgrade() -> None:
    op.drop_table("metric_values")
    op.drop_table("autoscaling_rules")
    op.drop_column("endpoints", "last_autoscaled_at")
