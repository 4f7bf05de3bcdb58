"""`rollway migrate`: what it did, and what PostgreSQL refuses, in a sentence."""

import json

import psycopg
import pytest

from tests.cli.conftest import Rollway


@pytest.fixture
def empty(empty_database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a database without tables, which is DATABASE_URL; REDIS_URL is not set."""
    monkeypatch.setenv("DATABASE_URL", empty_database)
    return empty_database


def test_a_migration_says_from_where_to_where_and_a_second_one_that_there_was_nothing_to_do(
    rollway: Rollway, empty: str
) -> None:
    first, second = json.loads(rollway("migrate", "--json").out), rollway("migrate")
    assert (first["before"], first["database"]) == (None, empty.rpartition("@")[2])
    assert second.out == f"The database {first['database']} has schema {first['after']} already.\n"


def test_what_postgres_refuses_is_one_sentence_and_nothing_is_changed(rollway: Rollway, empty: str) -> None:
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("CREATE TABLE deployments (is_ours boolean)")
        ended = rollway("migrate")
        assert (ended.code, ended.err.count("\n")) == (1, 1)
        assert 'cannot be migrated: relation "deployments" already exists; nothing was changed.' in ended.err
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert tables == [("deployments",)]


def test_a_database_of_another_release_is_named_and_left_alone(rollway: Rollway, empty: str) -> None:
    rollway("migrate")
    with psycopg.connect(empty, autocommit=True) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0099'")
        ended = rollway("migrate")
        assert (ended.code, ended.err.count("\n")) == (1, 1)
        assert "has schema 0099, which this release does not know: a newer release has migrated it" in ended.err
        assert "or it is of before 0.1.0, which no release migrates, so name an empty database" in ended.err
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("0099",)]


def test_a_database_that_is_away_is_one_sentence(rollway: Rollway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:topsecret@127.0.0.1:1/rollway")
    ended = rollway("migrate")
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert "PostgreSQL at 127.0.0.1:1 cannot be reached: nothing listens there." in ended.err
    assert "topsecret" not in ended.err
