"""memory of devices that is used by no replica"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # by kind and device, gigabytes: {"gpu": {"GPU-77aa": 11.2}}
    op.execute("ALTER TABLE hosts ADD COLUMN memory_of_others jsonb DEFAULT '{}' NOT NULL")
    # each new owner first deletes what is free again
    op.execute("CREATE INDEX held_devices_free_idx ON held_devices (free_at) WHERE free_at IS NOT NULL")


def downgrade() -> None:
    op.execute("DROP INDEX held_devices_free_idx")
    op.execute("ALTER TABLE hosts DROP COLUMN memory_of_others")
