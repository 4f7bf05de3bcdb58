"""Where Postgres is: what is wrong with a URL is told, its password never."""

import pytest
from sqlalchemy import Engine

from db.connection.arrays import columns
from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import transaction
from db.views.documents import begin_reading
from domain.text.errors import InvalidInputError
from tests.support.rows.databases import engine_on
from tests.support.rows.deployments import read


@pytest.mark.parametrize(
    "url",
    [
        "",
        "u:secret@host/db",
        "mysql://u:secret@host/db",
        "postgresql://u:secret@host:port/db",
        "postgresql://u:secret@/db",
        "postgresql://u:secret@host",
        "sqlite:///secret.db",
    ],
)
def test_a_database_url_that_cannot_be_used_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(InvalidInputError, match="DATABASE_URL") as refused:
        DatabaseSettings.from_environment({"DATABASE_URL": url})
    assert "secret" not in str(refused.value)
    assert "postgresql://user:password@host:port/database" in str(refused.value)
    assert refused.value.__cause__ is None


def test_any_postgres_url_is_opened_with_psycopg() -> None:
    for scheme in ("postgresql", "postgresql+psycopg2", "postgresql+asyncpg"):
        assert DatabaseSettings(url=f"{scheme}://u:p@host/db").url == "postgresql://u:p@host/db"


def test_no_session_waits_or_stands_still_for_ever_and_all_speak_utc(engine: Engine) -> None:
    names = ["statement_timeout", "lock_timeout", "transaction_timeout", "TimeZone", "application_name"]
    (row,) = read(engine, f"SELECT {', '.join(f'current_setting({name!r}) AS {name}' for name in names)}")
    assert list(row.values()) == ["8s", "2s", "30s", "UTC", "rollway"]


def test_statements_are_planned_once_but_those_of_reads_for_people(engine: Engine) -> None:
    mode = "SELECT current_setting('plan_cache_mode')"
    with transaction(engine) as connection:
        assert connection.execute(mode).fetchall() == [("force_generic_plan",)]
    with transaction(engine) as connection:
        begin_reading(connection)
        assert connection.execute(mode).fetchall() == [("force_custom_plan",)]
    with transaction(engine) as connection:
        assert connection.execute(mode).fetchall() == [("force_generic_plan",)]


def test_a_statement_is_prepared_when_it_comes_a_second_time(database: str) -> None:
    fresh = engine_on(database)
    with transaction(fresh) as connection:
        for number in (1, 2, 70_000):  # of types that psycopg tells apart
            connection.execute(f"SELECT * FROM {columns('number int4')}", columns("number int4").arrays([(number,)]))
        query = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%unnest%'"
        assert connection.execute(query).fetchall() == [(1,)]
    fresh.dispose()
