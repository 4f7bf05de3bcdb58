"""the history of the fleet itself, the place of each session, and links that log in once"""

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_STATEMENTS = (
    # the deeds that belong to no deployment, as deployment_history has the others
    """
    CREATE TABLE fleet_history (
        id uuid DEFAULT uuidv7() NOT NULL,
        phase text NOT NULL,
        target text NOT NULL, -- the name of the freeze, host, token or the like; the id of a session
        actor text NOT NULL,
        message text NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT fleet_history_pkey PRIMARY KEY (id)
    )
    """,
    "CREATE INDEX fleet_history_created_at_idx ON fleet_history (created_at)",
    # a session that is over is asked for the token that began it
    "CREATE INDEX fleet_history_log_in_idx ON fleet_history (target) WHERE phase = 'log_in'",
    # deeds are few among the records of handlers, whatever the size of the fleet
    "CREATE INDEX deployment_history_asked_idx ON deployment_history (updated_at) WHERE result = 'asked'",
    "ALTER TABLE sessions ADD COLUMN address text, ADD COLUMN browser text, ADD COLUMN last_used_at timestamptz",
    # as in `tokens` and `sessions`, only the SHA-256 of the secret is here
    """
    CREATE TABLE login_links (
        hash bytea NOT NULL,
        token text NOT NULL,
        ends_at timestamptz NOT NULL,
        used_at timestamptz,
        CONSTRAINT login_links_pkey PRIMARY KEY (hash),
        CONSTRAINT login_links_hash_check CHECK (length(hash) = 32),
        CONSTRAINT login_links_token_fkey FOREIGN KEY (token) REFERENCES tokens ON DELETE CASCADE
    )
    """,
    "CREATE INDEX login_links_token_idx ON login_links (token)",
)


def upgrade() -> None:
    for statement in _STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE login_links")
    op.execute("ALTER TABLE sessions DROP COLUMN address, DROP COLUMN browser, DROP COLUMN last_used_at")
    op.execute("DROP INDEX deployment_history_asked_idx")
    op.execute("DROP TABLE fleet_history")
