"""memory of devices that is used by no replica"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # by kind and device, gigabytes: {"gpu": {"GPU-77aa": 11.2}}
    op.execute("ALTER TABLE hosts ADD COLUMN memory_of_others jsonb DEFAULT '{}' NOT NULL")


def downgrade() -> None:
    op.execute("ALTER TABLE hosts DROP COLUMN memory_of_others")
