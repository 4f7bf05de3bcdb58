"""first tables"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "commands",
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("result", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.PrimaryKeyConstraint("request_id", name=op.f("commands_pkey")),
    )
    op.create_table(
        "endpoints",
        sa.Column("id", sa.Uuid(), server_default=sa.text("uuidv7()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("desired_replicas", sa.Integer(), nullable=False),
        sa.Column("lifecycle", sa.Text(), server_default="pending", nullable=False),
        sa.Column("sub_step", sa.Text(), nullable=True),
        sa.Column("current_revision_id", sa.Uuid(), nullable=True),
        sa.Column("deploying_revision_id", sa.Uuid(), nullable=True),
        sa.Column("rollout_id", sa.Uuid(), nullable=True),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "phase_started_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("phase_attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("degraded_reason", sa.Text(), nullable=True),
        sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failed_revision_id", sa.Uuid(), nullable=True),
        sa.Column("failed_starts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("last_failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("history_id", sa.Uuid(), nullable=True),
        sa.Column("history_key", sa.Text(), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint(
            "(lifecycle = 'deploying') = (deploying_revision_id IS NOT NULL)",
            name=op.f("endpoints_deploying_has_revision_check"),
        ),
        sa.CheckConstraint(
            "(lifecycle = 'deploying') = (rollout_id IS NOT NULL)", name=op.f("endpoints_deploying_has_rollout_check")
        ),
        sa.CheckConstraint(
            "(lifecycle = 'deploying') = (sub_step IS NOT NULL)", name=op.f("endpoints_deploying_has_sub_step_check")
        ),
        sa.CheckConstraint(
            "lifecycle IN ('pending', 'scaling', 'ready', 'deploying', 'destroying', 'destroyed')",
            name=op.f("endpoints_lifecycle_check"),
        ),
        sa.CheckConstraint(
            "lifecycle NOT IN ('scaling', 'ready', 'deploying') OR current_revision_id IS NOT NULL",
            name=op.f("endpoints_working_has_revision_check"),
        ),
        sa.CheckConstraint(
            "paused_at IS NULL OR lifecycle = 'deploying'", name=op.f("endpoints_only_rollouts_pause_check")
        ),
        sa.CheckConstraint("sub_step IN ('provisioning', 'rolling_back')", name=op.f("endpoints_sub_step_check")),
        sa.CheckConstraint(
            "(degraded_reason IS NULL) = (retry_at IS NULL)", name=op.f("endpoints_degraded_is_retried_check")
        ),
        sa.CheckConstraint(
            "deploying_revision_id <> current_revision_id", name=op.f("endpoints_deploying_is_another_revision_check")
        ),
        sa.CheckConstraint("desired_replicas >= 0", name=op.f("endpoints_desired_replicas_check")),
        sa.CheckConstraint(
            "failed_starts >= 0 AND (failed_starts = 0 OR (failed_revision_id IS NOT NULL AND last_failed_at IS NOT NULL))",
            name=op.f("endpoints_failed_starts_check"),
        ),
        sa.ForeignKeyConstraint(
            ["current_revision_id", "id"],
            ["revisions.id", "revisions.endpoint_id"],
            name=op.f("endpoints_current_revision_id_fkey"),
            use_alter=True,
        ),
        sa.ForeignKeyConstraint(
            ["deploying_revision_id", "id"],
            ["revisions.id", "revisions.endpoint_id"],
            name=op.f("endpoints_deploying_revision_id_fkey"),
            use_alter=True,
        ),
        sa.ForeignKeyConstraint(
            ["rollout_id"], ["rollouts.id"], name=op.f("endpoints_rollout_id_fkey"), use_alter=True
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("endpoints_pkey")),
    )
    op.create_index(
        "endpoints_due_idx", "endpoints", ["due_at"], unique=False, postgresql_where=sa.text("due_at IS NOT NULL")
    )
    op.create_index(
        "endpoints_name_key", "endpoints", ["name"], unique=True, postgresql_where=sa.text("lifecycle <> 'destroyed'")
    )
    op.create_table(
        "policies",
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("limits", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "updated_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["endpoint_id"], ["endpoints.id"], name=op.f("policies_endpoint_id_fkey")),
        sa.PrimaryKeyConstraint("endpoint_id", name=op.f("policies_pkey")),
    )
    op.create_table(
        "revisions",
        sa.Column("id", sa.Uuid(), server_default=sa.text("uuidv7()"), nullable=False),
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["endpoint_id"], ["endpoints.id"], name=op.f("revisions_endpoint_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("revisions_pkey")),
        sa.UniqueConstraint("endpoint_id", "name", name=op.f("revisions_endpoint_id_name_key")),
        sa.UniqueConstraint("id", "endpoint_id", name=op.f("revisions_id_endpoint_id_key")),
    )
    op.create_table(
        "rollouts",
        sa.Column("id", sa.Uuid(), server_default=sa.text("uuidv7()"), nullable=False),
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("from_revision_id", sa.Uuid(), nullable=False),
        sa.Column("to_revision_id", sa.Uuid(), nullable=False),
        sa.Column("strategy", sa.Text(), nullable=False),
        sa.Column("spec", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("limits", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("desired_at_start", sa.Integer(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column(
            "started_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "last_progress_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("deadline", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("clock_stopped_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("promote_requested", sa.Boolean(), server_default="false", nullable=False),
        sa.Column("failed_routes", sa.Integer(), server_default="0", nullable=False),
        sa.Column("steps", sa.Integer(), server_default="0", nullable=False),
        sa.Column("back_reason", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "outcome IN ('completed', 'rolled_back', 'superseded', 'destroyed')", name=op.f("rollouts_outcome_check")
        ),
        sa.CheckConstraint("(outcome IS NULL) = (ended_at IS NULL)", name=op.f("rollouts_ended_has_outcome_check")),
        sa.CheckConstraint("from_revision_id <> to_revision_id", name=op.f("rollouts_goes_somewhere_check")),
        sa.CheckConstraint(
            "outcome IS NULL OR clock_stopped_at IS NULL", name=op.f("rollouts_ended_clock_runs_no_more_check")
        ),
        sa.ForeignKeyConstraint(["endpoint_id"], ["endpoints.id"], name=op.f("rollouts_endpoint_id_fkey")),
        sa.ForeignKeyConstraint(
            ["from_revision_id", "endpoint_id"],
            ["revisions.id", "revisions.endpoint_id"],
            name=op.f("rollouts_from_revision_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["to_revision_id", "endpoint_id"],
            ["revisions.id", "revisions.endpoint_id"],
            name=op.f("rollouts_to_revision_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("rollouts_pkey")),
    )
    op.create_index("rollouts_endpoint_id_idx", "rollouts", ["endpoint_id", "started_at"], unique=False)
    op.create_index(
        "rollouts_one_open_key", "rollouts", ["endpoint_id"], unique=True, postgresql_where=sa.text("ended_at IS NULL")
    )
    op.create_table(
        "deployment_history",
        sa.Column("id", sa.Uuid(), server_default=sa.text("uuidv7()"), nullable=False),
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("rollout_id", sa.Uuid(), nullable=True),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("error_code", sa.Text(), nullable=True),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default="1", nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column(
            "updated_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint("attempts > 0", name=op.f("deployment_history_attempts_check")),
        sa.ForeignKeyConstraint(["endpoint_id"], ["endpoints.id"], name=op.f("deployment_history_endpoint_id_fkey")),
        sa.ForeignKeyConstraint(["rollout_id"], ["rollouts.id"], name=op.f("deployment_history_rollout_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("deployment_history_pkey")),
    )
    op.create_index(
        "deployment_history_endpoint_id_idx", "deployment_history", ["endpoint_id", "updated_at"], unique=False
    )
    op.create_table(
        "rollout_steps",
        sa.Column("rollout_id", sa.Uuid(), nullable=False),
        sa.Column("step_no", sa.Integer(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("inputs", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("decision", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.CheckConstraint(
            "verdict IN ('success', 'need_retry', 'skipped', 'error', 'expired', 'give_up')",
            name=op.f("rollout_steps_verdict_check"),
        ),
        sa.ForeignKeyConstraint(["rollout_id"], ["rollouts.id"], name=op.f("rollout_steps_rollout_id_fkey")),
        sa.PrimaryKeyConstraint("rollout_id", "step_no", name=op.f("rollout_steps_pkey")),
    )
    op.create_table(
        "routes",
        sa.Column("id", sa.Uuid(), server_default=sa.text("uuidv7()"), nullable=False),
        sa.Column("endpoint_id", sa.Uuid(), nullable=False),
        sa.Column("revision_id", sa.Uuid(), nullable=False),
        sa.Column("rollout_id", sa.Uuid(), nullable=True),
        sa.Column("status", sa.Text(), server_default="provisioning", nullable=False),
        sa.Column(
            "status_changed_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("traffic_status", sa.Text(), nullable=False),
        sa.Column("traffic_ratio", sa.Float(), server_default="1", nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("replica_handle", sa.Text(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("probe_streak", sa.Integer(), server_default="0", nullable=False),
        sa.Column("status_reason", sa.Text(), server_default="", nullable=False),
        sa.Column("log_tail", sa.Text(), nullable=True),
        sa.Column("parked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("drain_started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stop_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stopped_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.CheckConstraint(
            "parked_until IS NULL OR traffic_status = 'inactive'", name=op.f("routes_parked_is_out_of_traffic_check")
        ),
        sa.CheckConstraint("status <> 'failed' OR status_reason <> ''", name=op.f("routes_failed_says_why_check")),
        sa.CheckConstraint(
            "status <> 'terminated' OR stopped_at IS NOT NULL", name=op.f("routes_terminated_was_stopped_check")
        ),
        sa.CheckConstraint(
            "status <> 'terminating' OR drain_started_at IS NOT NULL", name=op.f("routes_terminating_drains_check")
        ),
        sa.CheckConstraint(
            "status IN ('provisioning', 'healthy', 'unhealthy', 'degraded', 'terminating', 'terminated', 'failed')",
            name=op.f("routes_status_check"),
        ),
        sa.CheckConstraint(
            "status NOT IN ('healthy', 'unhealthy', 'degraded') OR started_at IS NOT NULL",
            name=op.f("routes_running_was_started_check"),
        ),
        sa.CheckConstraint(
            "status NOT IN ('terminating', 'terminated', 'failed') OR traffic_status = 'inactive'",
            name=op.f("routes_gone_has_no_traffic_check"),
        ),
        sa.CheckConstraint("traffic_status IN ('active', 'inactive')", name=op.f("routes_traffic_status_check")),
        sa.CheckConstraint("traffic_ratio BETWEEN 0 AND 1", name=op.f("routes_traffic_ratio_check")),
        sa.ForeignKeyConstraint(["endpoint_id"], ["endpoints.id"], name=op.f("routes_endpoint_id_fkey")),
        sa.ForeignKeyConstraint(
            ["revision_id", "endpoint_id"],
            ["revisions.id", "revisions.endpoint_id"],
            name=op.f("routes_revision_id_fkey"),
        ),
        sa.ForeignKeyConstraint(["rollout_id"], ["rollouts.id"], name=op.f("routes_rollout_id_fkey")),
        sa.PrimaryKeyConstraint("id", name=op.f("routes_pkey")),
    )
    op.create_index("routes_endpoint_id_idx", "routes", ["endpoint_id", "created_at"], unique=False)
    op.create_index(
        "routes_live_idx",
        "routes",
        ["endpoint_id"],
        unique=False,
        postgresql_where=sa.text("status NOT IN ('terminated', 'failed')"),
    )
    op.create_index(
        "routes_unstopped_idx", "routes", ["status"], unique=False, postgresql_where=sa.text("stopped_at IS NULL")
    )


def downgrade() -> None:
    op.drop_index("routes_unstopped_idx", table_name="routes", postgresql_where=sa.text("stopped_at IS NULL"))
    op.drop_index(
        "routes_live_idx", table_name="routes", postgresql_where=sa.text("status NOT IN ('terminated', 'failed')")
    )
    op.drop_index("routes_endpoint_id_idx", table_name="routes")
    op.drop_table("routes")
    op.drop_table("rollout_steps")
    op.drop_index("deployment_history_endpoint_id_idx", table_name="deployment_history")
    op.drop_table("deployment_history")
    op.drop_index("rollouts_one_open_key", table_name="rollouts", postgresql_where=sa.text("ended_at IS NULL"))
    op.drop_index("rollouts_endpoint_id_idx", table_name="rollouts")
    op.drop_table("rollouts")
    op.drop_table("revisions")
    op.drop_table("policies")
    op.drop_index("endpoints_name_key", table_name="endpoints", postgresql_where=sa.text("lifecycle <> 'destroyed'"))
    op.drop_index("endpoints_due_idx", table_name="endpoints", postgresql_where=sa.text("due_at IS NOT NULL"))
    op.drop_table("endpoints")
    op.drop_table("commands")
