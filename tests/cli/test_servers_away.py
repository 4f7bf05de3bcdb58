"""When Postgres or Redis does not answer."""

import time
from typing import LiteralString

import pytest
from sqlalchemy import Engine, text

from tests.cli.conftest import Rollway
from tests.support.deployments import NOBODY, make_deployment, write

pytestmark = pytest.mark.usefixtures("servers")


@pytest.mark.parametrize("arguments", [["status"], ["scale", "web", "3"], ["history", "web"]])
def test_a_postgres_that_is_away_is_named_with_host_and_port_and_no_password(
    rollway: Rollway, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://me:topsecret@127.0.0.1:1/rollway")
    began = time.monotonic()
    ended = rollway(*arguments)
    assert ended.code == 3
    assert ended.err.startswith("PostgreSQL at 127.0.0.1:1/rollway cannot be reached")
    assert "topsecret" not in ended.err
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("url", ["postgresql://me:topsecret@[/rollway", "host=nowhere topsecret", "mysql://topsecret"])
def test_a_database_url_that_makes_no_sense_is_one_sentence_without_the_secret(
    rollway: Rollway, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    ended = rollway("status")
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert "DATABASE_URL" in ended.err
    assert "topsecret" not in ended.err


@pytest.mark.parametrize(
    ("code", "said"), [("53100", "has no space left on its disk"), ("57014", "did not answer in time")]
)
def test_a_postgres_that_refuses_a_write_is_called_what_it_is(
    rollway: Rollway, engine: Engine, code: LiteralString, said: str
) -> None:
    make_deployment(engine)
    body = f"BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END"
    write(engine, f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
    write(engine, "CREATE TRIGGER refuse BEFORE INSERT ON commands EXECUTE FUNCTION refuse()")
    ended = rollway("scale", "web", "4")
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert said in ended.err


def test_a_database_without_tables_says_how_to_get_them(
    rollway: Rollway, monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"{database.rpartition('/')[0]}/postgres")
    ended = rollway("status")
    assert ended.code == 3
    assert "run 'make migrate'" in ended.err


def test_without_redis_a_write_is_done_all_the_same(
    rollway: Rollway, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", NOBODY)
    make_deployment(engine)
    ended = rollway("scale", "web", "4")
    assert (ended.code, ended.out) == (0, "web scaled from 3 to 4 replicas\n")
    assert "the next tick does it" in ended.err
    with engine.connect() as connection:
        assert connection.execute(text("SELECT desired_replicas FROM deployments")).scalar_one() == 4
