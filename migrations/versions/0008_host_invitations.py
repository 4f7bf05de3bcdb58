"""invitations, by which a machine becomes a host once"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # only the SHA-256 of what a machine shows is here; `sealed` is opened by the line alone, which is kept nowhere
    op.execute(
        """
        CREATE TABLE host_invitations (
            hash bytea NOT NULL,
            sealed text NOT NULL,
            made_by text NOT NULL,
            ends_at timestamptz NOT NULL,
            used_at timestamptz,
            machine text, -- who has used it, and may ask again
            host text,
            CONSTRAINT host_invitations_pkey PRIMARY KEY (hash),
            CONSTRAINT host_invitations_hash_check CHECK (length(hash) = 32)
        )
        """
    )


def downgrade() -> None:
    op.execute("DROP TABLE host_invitations")
