"""A Postgres that gives no answer: its errors, and a connection that gives up a server which owes it one.

The network keeps quiet about a server that is suspended.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.errors import _WaitTimeout

AWAY = (psycopg.OperationalError, psycopg.errors.TransactionTimeout)
"""Postgres did not answer, or ended what was under way: no request is to blame, and a second try may succeed."""
_INTERVAL = 0.1
KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 2, "tcp_user_timeout": 9000}
"""Options of libpq: a machine that is gone is noticed within 9 s, even by an idle connection."""
SEEN_BY_SERVER = {name.replace("keepalives", "tcp_keepalives"): value for name, value in KEEPALIVE.items()}
"""Settings of Postgres for the same: it then frees what a worker that is cut off has locked."""


def is_unreachable(error: BaseException) -> bool:
    """Whether the way to Postgres is cut, or Postgres ends or begins: no statement is to blame, and no row.

    What Postgres itself refuses has a code, and only those of classes 08 and 57P mean that.
    """
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08").startswith(("08", "57P"))


class AnsweredCursor(psycopg.Cursor[Any]):
    """A cursor that knows the number of touched rows in a pipeline too."""

    @property
    def rowcount(self) -> int:
        """Waits for the answer."""
        self._fetch_pipeline()
        return super().rowcount


class AnsweredConnection(psycopg.Connection[Any]):
    """Closes itself, with an OperationalError, when an answer takes longer than `patience` seconds; None: no limit.

    Longer than `statement_timeout`, after which a server that works says so itself.
    """

    patience: float | None = None
    set_in_transactions: Mapping[str, str] | None = None
    """Settings that each transaction begins with, by name, where the session of the next one may be another."""

    def wait(self, gen: PQGen[RV], interval: float = _INTERVAL, timeout: float | None = None) -> RV:
        """Wait for what the server answers, as psycopg does in every statement, commit and rollback."""
        try:
            return super().wait(gen, interval, self.patience if timeout is None else timeout)
        except _WaitTimeout as error:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server has been silent for {self.patience:g} s") from error

    def rollback(self) -> None:
        """Roll back, except on a closed connection, where an error would hide why it was closed."""
        if not self.closed:
            super().rollback()


@contextmanager
def answered_within(connection: psycopg.Connection, seconds: float) -> Iterator[None]:
    """Close this connection, with an OperationalError, when an answer within the body takes longer than `seconds`."""
    assert isinstance(connection, AnsweredConnection)  # noqa: S101  (narrows the type; every engine of ours makes such)
    before, connection.patience = connection.patience, seconds
    try:
        yield
    finally:
        connection.patience = before
