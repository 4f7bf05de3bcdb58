"""Real servers for every test that asks: one Postgres and one Valkey a session, a fresh migrated database a test."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
import redis
from alembic import command
from alembic.config import Config
from celery import Celery
from psycopg import sql
from sqlalchemy import Engine

from db.audit.replay import replay_rollouts
from db.engine import make_engine, transaction
from db.settings import DatabaseSettings, database_url
from stack.home import project_root
from tasks.redis.wake import Waker
from tasks.settings import celery_settings
from tests.support.docker_engine import NoEngineError, any_engine, import_busybox
from tests.support.servers import EmbeddedServer, embedded_postgres, embedded_redis

TEMPLATE = "rollway_template"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with embedded_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with embedded_redis(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture(scope="session")
def template(postgres_server: EmbeddedServer) -> str:
    """The name of a database that has been migrated once; every test's database is a copy of it."""
    url = _database(postgres_server, TEMPLATE)
    _administer(postgres_server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    engine = make_engine(DatabaseSettings(database_url(url)))
    config = Config(project_root() / "alembic.ini")
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    engine.dispose()
    return TEMPLATE


@pytest.fixture
def database(request: pytest.FixtureRequest, postgres_server: EmbeddedServer, template: str) -> Iterator[str]:
    """The URL of a fresh, migrated database. Every rollout in it is replayed in the end."""
    with _copy_of(template, postgres_server) as url:
        yield url
        if request.node.get_closest_marker("decides_wrongly") is None:
            _replay(url)


@pytest.fixture(scope="module")
def module_database(postgres_server: EmbeddedServer, template: str) -> Iterator[str]:
    """The same, for all tests of a module that share their workers."""
    with _copy_of(template, postgres_server) as url:
        yield url
        _replay(url)


@pytest.fixture
def engine(database: str) -> Iterator[Engine]:
    """An engine on that database."""
    made = make_engine(DatabaseSettings(database_url(database)))
    yield made
    made.dispose()


@pytest.fixture
def redis_url(redis_server: EmbeddedServer) -> str:
    """The URL of an empty Valkey."""
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    return redis_server.url


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as made:
        yield made


@pytest.fixture
def waker(client: redis.Redis, redis_url: str) -> Iterator[Waker]:
    """A real one; what it sends waits in Valkey, because no worker runs."""
    app = Celery("test", set_as_current=False)
    app.conf.update(celery_settings({"REDIS_URL": redis_url}))
    yield Waker(app, client)
    app.close()


@pytest.fixture(scope="session")
def docker_url() -> Iterator[str]:
    """The URL of a real Docker engine that holds IMAGE; the tests skip, saying why, where there is none."""
    try:
        with any_engine() as url:
            import_busybox(url)
            yield url
    except NoEngineError as error:
        pytest.skip(f"NO DOCKER ENGINE, SO THE DOCKER RUNTIME IS NOT TESTED HERE: {error}")


@contextmanager
def _copy_of(template: str, server: EmbeddedServer) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    _administer(server, create)
    try:
        yield _database(server, name)
    finally:
        _administer(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _replay(url: str) -> None:
    """Each decision that is stored must come out again, as the data it was made from and the code now are."""
    engine = make_engine(DatabaseSettings(database_url(url), statement_timeout=0))
    try:
        with transaction(engine) as connection:
            report = replay_rollouts(connection)
    finally:
        engine.dispose()
    assert report.differing == (), "\n".join(map(str, report.differing))


def _database(server: EmbeddedServer, name: str) -> str:
    return f"{server.url.rpartition('/')[0]}/{name}"


def _administer(server: EmbeddedServer, statement: sql.Composed) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(statement)
