"""since when a new replica is warmed up, and when it was warm"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # before it is healthy: since when the clock of its revision's warm_up runs, and when its requests were answered fast
    op.execute("ALTER TABLE routes ADD COLUMN warm_up_started_at timestamptz, ADD COLUMN warmed_at timestamptz")


def downgrade() -> None:
    op.execute("ALTER TABLE routes DROP COLUMN warm_up_started_at, DROP COLUMN warmed_at")
