"""A Postgres that says nothing any more, though its connections stand: suspended, or behind a network that is gone."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest
from sqlalchemy import Engine, make_url

from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import in_transaction, make_engine, transaction
from tests.support.faults.forwarder import Forwarder, forwarder
from tests.support.stack.server_process import suspend

QUICK = 500
"""A statement_timeout in milliseconds, so that the tests wait for 2 s and not for 9.5."""


def answer(connection: psycopg.Connection) -> int:
    ((number,),) = connection.execute("SELECT 42").fetchall()
    return int(number)


def once(engine: Engine, work: Callable[[psycopg.Connection], None]) -> None:
    with transaction(engine) as connection:
        work(connection)


@contextmanager
def patient_for_2_seconds(database: str) -> Iterator[Engine]:
    made = make_engine(DatabaseSettings(url=database, statement_timeout=QUICK))
    yield made
    made.dispose()


@pytest.fixture
def between(database: str) -> Iterator[tuple[Forwarder, Engine]]:
    """A network between us and Postgres, and an engine that has a connection through it."""
    url = make_url(database)
    assert url.port
    with forwarder(url.port) as network:
        behind = url.set(port=network.port).render_as_string(hide_password=False)
        with patient_for_2_seconds(behind) as engine:
            assert in_transaction(engine, answer) == 42
            yield network, engine


def test_by_default_it_is_noticed_within_ten_seconds_and_after_the_time_that_a_statement_may_take() -> None:
    settings = DatabaseSettings(url="postgresql://u:p@host/db")
    assert settings.patience_seconds
    assert settings.statement_timeout / 1000 < settings.patience_seconds < 10
    assert DatabaseSettings(url="postgresql://u:p@host/db", statement_timeout=0).patience_seconds is None


def test_a_network_that_forwards_nothing_any_more_is_noticed_and_forgotten_when_it_is_back(
    between: tuple[Forwarder, Engine],
) -> None:
    network, engine = between

    def ask_a_silent_one(connection: psycopg.Connection) -> None:
        network.is_forwarding.clear()
        answer(connection)

    began = time.monotonic()
    with pytest.raises(psycopg.OperationalError, match="the server has been silent for 2 s"):
        once(engine, ask_a_silent_one)
    assert 1.9 < time.monotonic() - began < 30
    network.is_forwarding.set()
    assert in_transaction(engine, answer) == 42


def test_a_suspended_server_process_is_noticed_and_another_one_asked(database: str) -> None:
    with patient_for_2_seconds(database) as engine:
        suspended = in_transaction(engine, lambda connection: connection.info.backend_pid)
        suspend(suspended)
        try:
            began = time.monotonic()
            assert in_transaction(engine, answer) == 42
            assert 1.9 < time.monotonic() - began < 30
        finally:
            os.kill(suspended, signal.SIGCONT)
        assert in_transaction(engine, lambda connection: connection.info.backend_pid) != suspended


def test_who_waits_for_a_lock_of_somebody_else_is_not_taken_for_silent(engine: Engine, database: str) -> None:
    with transaction(engine) as holder, patient_for_2_seconds(database) as impatient:
        holder.execute("LOCK TABLE hosts")
        assert holder.execute("SELECT").rowcount == 1  # so it is locked
        with pytest.raises(psycopg.errors.QueryCanceled):  # the server itself says that it took too long
            in_transaction(impatient, partial(psycopg.Connection.execute, query="SELECT * FROM hosts"))
