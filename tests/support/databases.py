"""Fresh databases on a real server: one is migrated, every other is a copy of it."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from alembic import command
from alembic.config import Config
from psycopg import sql

from db.audit.replay import replay_rollouts
from db.engine import make_engine, transaction
from db.settings import DatabaseSettings
from stack.home import project_root
from tests.support.servers import EmbeddedServer

_TEMPLATE = "rollway_template"
_numbers = itertools.count(1)


def migrated_template(server: EmbeddedServer) -> str:
    """The name of a new database that all migrations have run in."""
    url = _database(server, _TEMPLATE)
    _administer(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_TEMPLATE)))
    engine = make_engine(DatabaseSettings(url=url))
    config = Config(project_root() / "alembic.ini")
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    engine.dispose()
    return _TEMPLATE


@contextmanager
def copy_of(template: str, server: EmbeddedServer) -> Iterator[str]:
    """The URL of a database that is gone at the end."""
    name = f"test_{next(_numbers)}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template))
    _administer(server, create)
    try:
        yield _database(server, name)
    finally:
        _administer(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def replay(url: str) -> None:
    """Each decision that is stored must come out again, as the data it was made from and the code now are."""
    engine = make_engine(DatabaseSettings(url=url, statement_timeout=0))
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
