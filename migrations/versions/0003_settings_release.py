"""the last file that changed settings alone, so that an undo puts back what it replaced"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # what it replaced and what it set, as domain/steering/rollout_history.py has it; none: no file has changed settings alone
    op.execute("ALTER TABLE deployments ADD COLUMN settings_release jsonb")


def downgrade() -> None:
    op.execute("ALTER TABLE deployments DROP COLUMN settings_release")
