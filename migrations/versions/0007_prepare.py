"""hosts are prepared for a revision before its replicas run there, and a rollout begins with that"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_CHECK = "deployments_sub_step_check"

_STATEMENTS = (
    f"ALTER TABLE deployments DROP CONSTRAINT {_CHECK}",
    f"ALTER TABLE deployments ADD CONSTRAINT {_CHECK} CHECK (sub_step IN ('preparing', 'provisioning', 'rolling_back'))",
    # the id is what the runtime of the host knows the command by; another try has another one
    """
    CREATE TABLE preparations (
        id uuid DEFAULT uuidv7() NOT NULL,
        revision_id uuid NOT NULL,
        deployment_id uuid NOT NULL,
        host text NOT NULL,
        state text DEFAULT 'waiting' NOT NULL,
        words text DEFAULT '' NOT NULL, -- the last line of its output, or why it failed
        started_at timestamptz,
        ended_at timestamptz,
        CONSTRAINT preparations_pkey PRIMARY KEY (revision_id, host),
        CONSTRAINT preparations_revision_id_fkey FOREIGN KEY (revision_id) REFERENCES revisions ON DELETE CASCADE,
        CONSTRAINT preparations_deployment_id_fkey FOREIGN KEY (deployment_id) REFERENCES deployments ON DELETE CASCADE,
        CONSTRAINT preparations_state_check CHECK (state IN ('waiting', 'running', 'done', 'failed')),
        CONSTRAINT preparations_has_started_check CHECK (state = 'waiting' OR started_at IS NOT NULL),
        CONSTRAINT preparations_has_ended_check CHECK ((state IN ('done', 'failed')) = (ended_at IS NOT NULL))
    )
    """,
    "CREATE INDEX preparations_open_idx ON preparations (host) WHERE state IN ('waiting', 'running')",
    "CREATE INDEX preparations_deployment_id_idx ON preparations (deployment_id)",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE preparations")
    op.execute("UPDATE deployments SET sub_step = 'provisioning' WHERE sub_step = 'preparing'")
    op.execute(f"ALTER TABLE deployments DROP CONSTRAINT {_CHECK}")
    op.execute(f"ALTER TABLE deployments ADD CONSTRAINT {_CHECK} CHECK (sub_step IN ('provisioning', 'rolling_back'))")
