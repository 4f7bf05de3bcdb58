"""Runs migrations online, one at a time: an advisory lock, and timeouts so that no migration blocks the fleet."""

import os

from alembic import context
from sqlalchemy import Connection, text

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import make_engine

LOCK_TIMEOUT = "4s"
STATEMENT_TIMEOUT = "60s"
IDLE_TIMEOUT = "30s"


def _migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=None)
    with context.begin_transaction():
        connection.execute(text(f"SET LOCAL idle_in_transaction_session_timeout = '{IDLE_TIMEOUT}'"))
        # another migration is waited for, however long it takes
        connection.execute(text("SET LOCAL lock_timeout = 0"))
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('rollway migrations'))"))
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
        connection.execute(text(f"SET LOCAL statement_timeout = '{STATEMENT_TIMEOUT}'"))
        context.run_migrations()


connection = context.config.attributes.get("connection")
if connection is not None:
    _migrate(connection)
else:
    unlimited = DatabaseSettings.from_environment(os.environ).without_limits()
    with make_engine(unlimited, "rollway migrate").connect() as own:
        _migrate(own)
