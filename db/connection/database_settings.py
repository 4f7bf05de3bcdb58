"""Settings of Postgres: where it is, and how long it may keep us waiting."""

from typing import Annotated, Self

from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict
from pydantic import Field, PlainValidator

from db.unreachable import SEEN_BY_SERVER
from domain.installation.settings import Settings, database_address, libpq_url


def _database_url(raw: str) -> str:
    url = libpq_url(raw)
    try:
        parts = conninfo_to_dict(url) if url.startswith("postgresql://") else {}
    except ProgrammingError as error:
        raise ValueError(raw) from error
    ports = str(parts.get("port") or "5432").split(",")
    if not parts.get("host") or not parts.get("dbname") or not all(port.isdecimal() for port in ports):
        raise ValueError(raw)
    return url


class DatabaseSettings(Settings):
    """Timeouts in milliseconds; `pool_size` connections for each process."""

    url: Annotated[str, PlainValidator(_database_url)] = Field(
        validation_alias="DATABASE_URL", description="postgresql://user:password@host:port/database", repr=False
    )
    """The database, in libpq's form, which may name several hosts."""
    pool_size: int = 5
    statement_timeout: int = 8_000
    lock_timeout: int = 2_000
    transaction_timeout: int = 30_000
    """A session that has stood still in a transaction is ended, and its rows are free.

    No `idle_in_transaction_session_timeout`: to Postgres a pipeline that says nothing more is not idle.
    """

    @property
    def address(self) -> str:
        """host:port/database, for people."""
        return database_address(self.url)

    @property
    def patience_seconds(self) -> float | None:
        """The longest time to an answer: a server that works has ended the statement by then. None: no limit."""
        return self.statement_timeout / 1000 + 1.5 if self.statement_timeout else None

    @property
    def session(self) -> dict[str, str]:
        return {
            "statement_timeout": str(self.statement_timeout),
            "lock_timeout": str(self.lock_timeout),
            "transaction_timeout": str(self.transaction_timeout),
            "timezone": "UTC",
            "plan_cache_mode": "force_generic_plan",
        }

    @property
    def options(self) -> str:
        """The settings of a session and of its connection, in libpq's form."""
        return " ".join(f"-c {name}={value}" for name, value in (self.session | SEEN_BY_SERVER).items())

    def without_limits(self) -> Self:
        """Settings for migrations, which have limits of their own and wait for another migration under way."""
        return self.model_copy(update={"statement_timeout": 0, "transaction_timeout": 0})
