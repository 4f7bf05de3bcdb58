"""the labels of hosts, which revisions may require of theirs"""

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE hosts ADD COLUMN labels jsonb DEFAULT '{}' NOT NULL")


def downgrade() -> None:
    op.execute("ALTER TABLE hosts DROP COLUMN labels")
