"""a parked replica sleeps once every live proxy knows that it is parked"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE routes ADD COLUMN park_xid xid8, ADD COLUMN let_go_at timestamptz")
    op.execute(
        """
        CREATE INDEX routes_parked_idx ON routes (id)
         WHERE parked_until IS NOT NULL AND let_go_at IS NULL
           AND status NOT IN ('terminating', 'terminated', 'failed')
        """
    )


def downgrade() -> None:
    op.execute("DROP INDEX routes_parked_idx")
    op.execute("ALTER TABLE routes DROP COLUMN park_xid, DROP COLUMN let_go_at")
