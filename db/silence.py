"""A Postgres that gives no answer: its errors, and a connection that gives up a server which owes it one.

The network keeps quiet about a server that is suspended.
"""

from typing import Any

import psycopg
from psycopg.abc import RV, PQGen
from psycopg.errors import _WaitTimeout

AWAY = (psycopg.OperationalError, psycopg.errors.TransactionTimeout)
"""Postgres did not answer, or ended what was under way: nobody is to blame, and who asks again may be answered."""
_INTERVAL = 0.1
KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 2, "tcp_user_timeout": 9000}
"""For libpq: a machine that is gone is noticed within 9 s, also by a connection that asks nothing."""


class AnsweredCursor(psycopg.Cursor[Any]):
    """One that knows in a pipeline, too, how many rows a statement touched."""

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

    def wait(self, gen: PQGen[RV], interval: float = _INTERVAL, timeout: float | None = None) -> RV:
        """Wait for what the server answers, as psycopg does in every statement, commit and rollback."""
        try:
            return super().wait(gen, interval, self.patience if timeout is None else timeout)
        except _WaitTimeout as error:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"the server has been silent for {self.patience:g} s") from error

    def rollback(self) -> None:
        """Nothing is left to do on a closed connection; an error here would hide why it was closed."""
        if not self.closed:
            super().rollback()
