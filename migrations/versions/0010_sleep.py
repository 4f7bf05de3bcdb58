"""parked replicas sleep, and wake when they are needed again"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # set before the request is sent, since one that was sent may have been heard; while it is set, the replica starts
    op.execute(
        "ALTER TABLE routes ADD COLUMN asleep_at timestamptz, ADD COLUMN slept_at timestamptz, "
        "ADD COLUMN wake_started_at timestamptz"
    )


def downgrade() -> None:
    op.execute("ALTER TABLE routes DROP COLUMN asleep_at, DROP COLUMN slept_at, DROP COLUMN wake_started_at")
