"""Where Postgres is and how long it may keep us waiting, read from the environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from domain.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """`url` with the psycopg driver; timeouts in milliseconds; `pool_size` connections for each process."""

    url: URL
    pool_size: int = 5
    statement_timeout: int = 20_000
    lock_timeout: int = 2_000
    idle_timeout: int = 30_000

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """From DATABASE_URL. Raises InvalidInputError when it is missing or no postgresql:// URL."""
        raw = (os.environ if environment is None else environment).get("DATABASE_URL", "")
        return cls(database_url(raw))

    @property
    def options(self) -> str:
        """The session settings, in libpq's form."""
        return (
            f"-c statement_timeout={self.statement_timeout} -c lock_timeout={self.lock_timeout}"
            f" -c idle_in_transaction_session_timeout={self.idle_timeout} -c timezone=UTC"
        )


def database_url(raw: str) -> URL:
    """A SQLAlchemy URL for psycopg. Raises InvalidInputError; the message never shows the URL's password."""
    if not raw:
        raise InvalidInputError(
            "DATABASE_URL is not set; it is postgresql://user:password@host:port/database, or run 'rollway up'",
            field="DATABASE_URL",
        )
    try:
        url = make_url(raw)
    except (ArgumentError, ValueError):
        raise InvalidInputError(
            "DATABASE_URL cannot be read; it is postgresql://user:password@host:port/database", field="DATABASE_URL"
        ) from None
    if url.get_backend_name() not in ("postgresql", "postgres") or not url.host or not url.database:
        raise InvalidInputError(
            f"DATABASE_URL must be postgresql://user:password@host:port/database, not {url.drivername}://...",
            field="DATABASE_URL",
        )
    return url.set(drivername="postgresql+psycopg")
