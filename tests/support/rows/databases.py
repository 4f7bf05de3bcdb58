"""Fresh databases on a real server: one is migrated, every other is a copy of it."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from sqlalchemy import Engine

from db.audit.replay import ReplayReport, replay_pages
from db.connection.engine import make_engine
from db.connection.settings import DatabaseSettings
from migrations.schema import upgrade
from tests.support.stack.servers import EmbeddedServer
from tests.support.worlds.planned import hold_against_their_plans

_TEMPLATE = "rollway_template"
_numbers = itertools.count(1)


def migrated_template(server: EmbeddedServer) -> str:
    """The name of a new database that all migrations have run in."""
    url = _database(server, _TEMPLATE)
    _administer(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_TEMPLATE)))
    engine = engine_on(url)
    upgrade(engine)
    engine.dispose()
    return _TEMPLATE


def engine_on(url: str) -> Engine:
    """One more engine on a database, as another worker process has one."""
    return make_engine(DatabaseSettings(url=url))


@contextmanager
def copy_of(template: str, server: EmbeddedServer) -> Iterator[str]:
    """The URL of a database that is gone at the end."""
    name = f"test_{next(_numbers)}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
        sql.Identifier(name), sql.Identifier(template)
    )
    _administer(server, create)
    try:
        yield _database(server, name)
    finally:
        _administer(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def without_tables(server: EmbeddedServer) -> Iterator[str]:
    """The URL of a database that no migration has seen; it is gone at the end."""
    name = f"empty_{next(_numbers)}"
    _administer(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield _database(server, name)
    finally:
        _administer(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def replay(url: str) -> None:
    """Each decision that is stored must come out again, and each rollout in which nothing failed be as planned."""
    engine = make_engine(DatabaseSettings(url=url).without_limits())
    try:
        report = sum(replay_pages(engine), ReplayReport())
    finally:
        engine.dispose()
    assert report.differing == (), "\n".join(map(str, report.differing))
    hold_against_their_plans(url)


def _database(server: EmbeddedServer, name: str) -> str:
    return f"{server.url.rpartition('/')[0]}/{name}"


def _administer(server: EmbeddedServer, statement: sql.Composed) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(statement)
