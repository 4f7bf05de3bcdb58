"""Settings of Postgres: where it is, and how long it may keep us waiting."""

from typing import Annotated, Self

from pydantic import Field, PlainValidator
from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from domain.installation.settings import Settings


def _database_url(raw: str) -> URL:
    try:
        url = make_url(raw)
    except ArgumentError as error:
        raise ValueError(raw) from error
    if url.get_backend_name() not in ("postgresql", "postgres") or not url.host or not url.database:
        raise ValueError(raw)
    return url.set(drivername="postgresql+psycopg")


class DatabaseSettings(Settings):
    """Timeouts in milliseconds; `pool_size` connections for each process."""

    url: Annotated[URL, PlainValidator(_database_url)] = Field(
        validation_alias="DATABASE_URL", description="postgresql://user:password@host:port/database", repr=False
    )
    """The database; psycopg opens it."""
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
        return f"{self.url.host}:{self.url.port or 5432}/{self.url.database}"

    @property
    def patience_seconds(self) -> float | None:
        """The longest time to an answer: a server that works has ended the statement by then. None: no limit."""
        return self.statement_timeout / 1000 + 1.5 if self.statement_timeout else None

    @property
    def options(self) -> str:
        """The session settings, in libpq's form."""
        return (
            f"-c statement_timeout={self.statement_timeout} -c lock_timeout={self.lock_timeout}"
            f" -c transaction_timeout={self.transaction_timeout} -c timezone=UTC -c plan_cache_mode=force_generic_plan"
        )

    def without_limits(self) -> Self:
        """For migrations, which set limits of their own, and wait for another one that is under way."""
        return self.model_copy(update={"statement_timeout": 0, "transaction_timeout": 0})
