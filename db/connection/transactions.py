"""The engine, made in the process that uses it, and transactions that are tried again when Postgres says so."""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

import psycopg
from psycopg.sql import SQL, Identifier, Literal
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, InvalidatePoolError
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection
from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, wait_random_exponential

import db.connection.arrays  # noqa: F401  (an engine copies what psycopg knows of types when it is made)
from db.connection.database_settings import DatabaseSettings
from db.connection.server import refuse_unfit
from db.unreachable import AWAY, KEEPALIVE, AnsweredConnection, AnsweredCursor

if TYPE_CHECKING:
    from sqlalchemy.engine.interfaces import DBAPIConnection

T = TypeVar("T")
_ATTEMPTS = 5
_RESTED_SECONDS = 1.0
"""A connection that rested longer is pinged before it is used again."""


def make_engine(settings: DatabaseSettings, application: str = "rollway") -> Engine:
    """A pool of `pool_size` connections with the timeouts of the settings. Nothing is connected yet.

    Connecting raises UnfitServerError where the server is too old.
    """
    new_engine = create_engine(
        "postgresql+psycopg://",
        pool_size=settings.pool_size,
        max_overflow=2,
        pool_recycle=1800,
        pool_use_lifo=True,  # the connection that knows the most statements goes first
        connect_args={
            "options": settings.options,
            "application_name": application,
            "connect_timeout": 5,
            "prepare_threshold": 1,  # at second use: what is used once may be a migration, many statements in one
            "cursor_factory": AnsweredCursor,
            **KEEPALIVE,
        },
    )

    _ping_what_has_rested(new_engine)

    @event.listens_for(new_engine, "do_connect")
    def _connect(_dialect: object, _record: object, _words: object, arguments: dict[str, Any]) -> psycopg.Connection:
        connection = _open(settings, arguments)
        refuse_unfit(connection, settings.address)
        return connection

    return new_engine


def _open(settings: DatabaseSettings, arguments: Mapping[str, Any]) -> AnsweredConnection:
    """A connection whose session has the settings; of a pooler that keeps none, one that sets them in transactions."""
    try:
        connection = AnsweredConnection.connect(settings.url, **arguments)
    except psycopg.OperationalError as error:
        if _REFUSED_OPTIONS not in str(error):
            raise
        connection = AnsweredConnection.connect(settings.url, **{**arguments, "options": None})
    connection.patience = settings.patience_seconds
    if _has(connection, settings):
        return connection
    connection.prepare_threshold = None  # the next transaction may be in another session
    connection.set_in_transactions = settings.session
    return connection


_REFUSED_OPTIONS = "unsupported startup parameter"


def _has(connection: psycopg.Connection, settings: DatabaseSettings) -> bool:
    """Whether the session has the settings that were given when it was opened. A pooler may ignore them."""
    setting = "plan_cache_mode"
    try:
        ((value,),) = connection.execute("SELECT current_setting(%s)", (setting,), prepare=False).fetchall()
        connection.rollback()
    except psycopg.Error:
        connection.close()
        raise
    return bool(value == settings.session[setting])


@cache
def engine() -> Engine:
    """The engine of this process, from DATABASE_URL; made at first use because engines must not cross a fork."""
    return make_engine(DatabaseSettings.from_environment(os.environ))


def in_transaction(on: Engine, work: Callable[[psycopg.Connection], T], patience_seconds: float = 0) -> T:
    """`work` in one transaction, run again from its start after a deadlock, a lock timeout or a lost connection.

    Some attempts are made at once, and further ones for as long as the patience lasts; once it is over, a connection
    that nobody answers is the last attempt, since others wait meanwhile for what the caller holds. A connection lost
    while committing leaves open whether it was committed: `work` must be safe to repeat.
    """
    is_tried_again = partial(_is_tried_again, patient_until=time.monotonic() + patience_seconds)
    try:
        with transaction(on) as connection:
            return work(connection)
    except AWAY as error:
        if not is_tried_again(error):
            raise
    for attempt in Retrying(
        stop=stop_after_attempt(_ATTEMPTS - 1) & stop_after_delay(patience_seconds),
        wait=wait_random_exponential(multiplier=0.02, max=1),
        retry=retry_if_exception(is_tried_again),
        reraise=True,
    ):
        with attempt, transaction(on) as connection:
            return work(connection)
    raise AssertionError  # pragma: no cover  (Retrying returns or raises)


def _is_tried_again(error: BaseException, patient_until: float) -> bool:
    is_cut_off = isinstance(error, psycopg.errors.ConnectionTimeout)
    return isinstance(error, AWAY) and (not is_cut_off or time.monotonic() < patient_until)


@contextmanager
def transaction(on: Engine) -> Iterator[psycopg.Connection]:
    """A connection of the pool in a transaction: committed at the end, rolled back when the body raises.

    It is a pipeline: a statement is sent without waiting for the one before. To fetch rows, or their number, waits for
    all that was sent. So what Postgres refuses may be raised later than where it was executed,
    at the end of the body at the latest.
    """
    with closing(_pooled(on)) as pooled:
        connection = pooled.driver_connection
        assert isinstance(connection, AnsweredConnection)  # noqa: S101  (narrows the type: every engine makes such)
        connection.autocommit = True  # or psycopg waits for the answer to its own BEGIN
        try:
            with connection.pipeline():
                connection.execute("BEGIN", prepare=False)
                if connection.set_in_transactions:
                    _set_here(connection, connection.set_in_transactions)
                yield connection
                connection.execute("COMMIT", prepare=False)
        finally:
            connection.rollback()  # sends nothing after a COMMIT
            if not connection.closed:
                connection.autocommit = False


def _set_here(connection: psycopg.Connection, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        connection.execute(SQL("SET LOCAL {} = {}").format(Identifier(name), Literal(value)), prepare=False)


def _pooled(on: Engine) -> PoolProxiedConnection:
    """Raises what psycopg raises, also of a first connection, which SQLAlchemy asks for the version of the server."""
    try:
        return on.raw_connection()
    except DBAPIError as error:
        raise error.orig or error from None


def database_now(connection: psycopg.Connection) -> datetime:
    """The only clock that decides anything."""
    ((now,),) = connection.execute("SELECT clock_timestamp()").fetchall()
    assert isinstance(now, datetime)  # noqa: S101  (narrows the type)
    return now


def _ping_what_has_rested(new_engine: Engine) -> None:
    """Ping connections that rested; where one is dead, all are opened again: the server was restarted."""

    @event.listens_for(new_engine, "connect")
    @event.listens_for(new_engine, "checkin")
    def _note(_connection: object, record: ConnectionPoolEntry) -> None:
        record.info["used_at"] = time.monotonic()

    @event.listens_for(new_engine, "checkout")
    def _ping(connection: psycopg.Connection, record: ConnectionPoolEntry, _proxy: object) -> None:
        if not connection.closed and time.monotonic() - record.info["used_at"] < _RESTED_SECONDS:
            return
        try:
            new_engine.dialect.do_ping(cast("DBAPIConnection", connection))
        except psycopg.Error as error:
            raise InvalidatePoolError from error
