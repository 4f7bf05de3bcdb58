"""Connections of the pool: one that died is never met, or the transaction is tried again on another; pipelines."""

from itertools import count

import psycopg
import pytest
from sqlalchemy import Connection, Engine, text

import db.connection.transactions
from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import in_transaction, make_engine, transaction
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import read, write

PID = "SELECT pg_backend_pid() AS pid"


def end_connections_of(engine: Engine, database: str) -> None:
    (row,) = read(engine, PID)
    other = engine_on(database)
    write(other, "SELECT pg_terminate_backend(%s, 5000)", row["pid"])
    other.dispose()


def test_a_connection_that_died_in_use_costs_another_try_and_no_error(engine: Engine, database: str) -> None:
    end_connections_of(engine, database)
    assert in_transaction(engine, lambda connection: connection.execute("SELECT 42").fetchall()) == [(42,)]


def test_a_first_connection_that_dies_while_sqlalchemy_asks_it_for_the_version_costs_another_try(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = engine_on(database)
    initialize, died = made.dialect.initialize, count()

    def die_once(connection: Connection) -> None:
        if next(died) == 0:
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        initialize(connection)

    monkeypatch.setattr(made.dialect, "initialize", die_once)
    assert in_transaction(made, lambda connection: connection.execute("SELECT 42").fetchall()) == [(42,)]
    assert next(died) == 2
    made.dispose()


def test_a_connection_that_died_while_it_rested_is_replaced_before_it_is_used(
    engine: Engine, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db.connection.transactions, "_RESTED_SECONDS", 0.0)
    end_connections_of(engine, database)
    with transaction(engine) as connection:
        assert connection.execute("SELECT 42").fetchall() == [(42,)]


def add(engine: Engine, *replicas: int, error: Exception | None = None) -> None:
    """Deployments that want so many replicas each, in one transaction that fetches nothing."""
    with transaction(engine) as connection:
        for number, wanted in enumerate(replicas):
            values = (str(number), wanted)
            connection.execute("INSERT INTO deployments (name, desired_replicas) VALUES (%s, %s)", values)
        if error:
            raise error


def test_what_is_refused_and_never_fetched_is_raised_at_the_end_and_nothing_is_kept(engine: Engine) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        add(engine, 1, -1, 1)
    assert read(engine, "SELECT name FROM deployments") == []


def test_an_error_of_the_body_undoes_what_was_sent(engine: Engine) -> None:
    with pytest.raises(ValueError, match="no"):
        add(engine, 1, error=ValueError("no"))
    assert read(engine, "SELECT name FROM deployments") == []


def test_a_session_that_stands_still_in_a_transaction_is_ended_its_rows_are_free_and_it_begins_again(
    engine: Engine, database: str
) -> None:
    """A process that is suspended sends nothing more, and in a pipeline Postgres does not call that idle."""
    add(engine, 1)
    hasty = make_engine(DatabaseSettings(url=database, transaction_timeout=1000))
    attempts = count(1)

    def stand_still_once(connection: psycopg.Connection) -> int:
        attempt = next(attempts)
        connection.execute("UPDATE deployments SET desired_replicas = desired_replicas + 1 RETURNING id").fetchall()
        if attempt == 1:
            write(engine, "UPDATE deployments SET desired_replicas = 10")  # waits for the row, 2 s at most
        return attempt

    assert in_transaction(hasty, stand_still_once) == 2
    hasty.dispose()
    assert read(engine, "SELECT desired_replicas FROM deployments") == [{"desired_replicas": 11}]


def test_how_many_rows_a_statement_touched_is_known_before_anything_is_fetched(engine: Engine) -> None:
    with transaction(engine) as connection:
        inserted = connection.execute("INSERT INTO deployments (name, desired_replicas) VALUES ('a', 1), ('b', 1)")
        assert inserted.rowcount == 2
