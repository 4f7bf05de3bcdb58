"""The engine, made in the process that uses it, and transactions that are tried again when Postgres says so."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, wait_random_exponential

from db.server import refuse_unfit
from db.settings import DatabaseSettings
from db.silence import KEEPALIVE, AnsweredConnection

T = TypeVar("T")
_ATTEMPTS = 5
_TRY_AGAIN = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable)


def make_engine(settings: DatabaseSettings, application: str = "rollway") -> Engine:
    """A pool of `pool_size` connections with the timeouts of the settings. Nothing is connected yet.

    Connecting raises UnfitServerError where the server is too old.
    """
    made = create_engine(
        settings.url,
        pool_size=settings.pool_size,
        max_overflow=2,
        pool_pre_ping=True,
        pool_recycle=1800,
        connect_args={
            "options": settings.options,
            "application_name": application,
            "connect_timeout": 5,
            **KEEPALIVE,
        },
    )

    @event.listens_for(made, "do_connect")
    def _connect(_dialect: object, _record: object, _words: object, arguments: dict[str, Any]) -> psycopg.Connection:
        connection = AnsweredConnection.connect(**arguments)
        connection.patience = settings.patience_seconds
        refuse_unfit(connection, settings.address)
        return connection

    return made


@cache
def engine() -> Engine:
    """The engine of this process, from DATABASE_URL; made at first use because engines must not cross a fork."""
    return make_engine(DatabaseSettings.from_environment(os.environ))


def in_transaction(on: Engine, work: Callable[[psycopg.Connection], T], patience_seconds: float = 0) -> T:
    """`work` in one transaction, run again from its start after a deadlock, a lock timeout or a lost connection.

    Some attempts are made at once, and further ones for as long as the patience lasts. A connection lost while
    committing leaves open whether it was committed: `work` must be safe to repeat.
    """
    for attempt in Retrying(
        stop=stop_after_attempt(_ATTEMPTS) & stop_after_delay(patience_seconds),
        wait=wait_random_exponential(multiplier=0.02, max=1),
        retry=retry_if_exception(_worth_another_try),
        reraise=True,
    ):
        with attempt, transaction(on) as connection:
            return work(connection)
    raise AssertionError  # pragma: no cover  (Retrying returns or raises)


@contextmanager
def transaction(on: Engine) -> Iterator[psycopg.Connection]:
    """A connection of the pool in a transaction: committed at the end, rolled back when the body raises."""
    with on.begin() as pooled:
        connection = pooled.connection.driver_connection
        assert isinstance(connection, psycopg.Connection)  # noqa: S101  (narrows the type; the URL fixes the driver)
        yield connection


def database_now(connection: psycopg.Connection) -> datetime:
    """The only clock that decides anything."""
    ((now,),) = connection.execute("SELECT clock_timestamp()").fetchall()
    assert isinstance(now, datetime)  # noqa: S101  (narrows the type)
    return now


def _worth_another_try(error: BaseException) -> bool:
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or isinstance(error.orig, (*_TRY_AGAIN, psycopg.OperationalError))
    return isinstance(error, (*_TRY_AGAIN, psycopg.OperationalError))
