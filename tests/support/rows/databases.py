"""Fresh databases on a real server: one is migrated, every other is a copy of it."""

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

import psycopg
from psycopg import sql
from sqlalchemy import Engine, event

from db.audit.schema_faults import schema_parts
from db.audit.step_replay import ReplayReport, replay_pages
from db.connection.database_settings import DatabaseSettings
from db.connection.transactions import in_transaction, make_engine
from migrations.schema import upgrade
from tests.support.stack.servers import EmbeddedServer
from tests.support.worlds.planned import hold_against_their_plans

_TEMPLATE = "rollway_template"
_numbers = itertools.count(1)
_MOST_ROWS = 2_000
"""A database in which more were written is not emptied: what they leave behind makes the next test slower."""

_LOOKS = 10
CLEANER = "between tests"
"""What pg_stat_activity calls the sessions that look at a database after a test, and empty it."""

_SCHEMA = """
    SELECT md5(string_agg(part, ' ' ORDER BY part)) FROM (
        SELECT 'class' || oid || ':' || xmin FROM pg_class WHERE relnamespace = 'public'::regnamespace
         UNION ALL
        SELECT 'column' || attrelid || '.' || attnum || ':' || xmin FROM pg_attribute
         WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace)
         UNION ALL SELECT 'trigger' || oid || ':' || xmin FROM pg_trigger
         UNION ALL SELECT 'constraint' || oid || ':' || xmin FROM pg_constraint
         UNION ALL SELECT 'default' || oid || ':' || xmin FROM pg_attrdef
         UNION ALL SELECT 'function' || oid || ':' || xmin FROM pg_proc WHERE pronamespace = 'public'::regnamespace
         UNION ALL SELECT 'namespace' || oid || ':' || xmin FROM pg_namespace WHERE nspname !~ '^pg_'
         UNION ALL SELECT 'setting' || s::text FROM pg_db_role_setting AS s
         UNION ALL SELECT 'version' || v::text FROM alembic_version AS v
         UNION ALL SELECT 'installation' || i::text FROM installation AS i
    ) AS found (part)
"""
"""What no test may leave changed. Each row of a catalogue carries the transaction that wrote it."""

_EMPTY = """
    DO $$
    DECLARE written record; rows bigint; gone bigint := 0;
    BEGIN
        SET LOCAL session_replication_role = replica;
        FOR written IN SELECT oid::regclass AS name FROM pg_class WHERE relkind = 'r' AND NOT relispartition
                          AND relnamespace = 'public'::regnamespace
                          AND relname NOT IN ('alembic_version', 'installation')
                          AND (pg_relation_size(oid) > 0 OR oid IN (SELECT inhparent FROM pg_inherits))
        LOOP
            EXECUTE format('DELETE FROM %s', written.name);
            GET DIAGNOSTICS rows = ROW_COUNT;
            gone := gone + rows;
        END LOOP;
        PERFORM setval(seqrelid, seqstart, false) FROM pg_sequence;
        PERFORM set_config('tests.gone', gone::text, false);
    END $$
"""
"""A table that nobody has written into has no page."""


class Copies:
    """Databases for one test after the other: emptied between two, and copied anew where one was changed otherwise."""

    def __init__(self, template: str, server: EmbeddedServer) -> None:
        self._template, self._server = template, server
        self._free: list[_Copy] = []
        self._lent: dict[str, _Copy] = {}

    def engine_on(self, url: str) -> Engine:
        """The engine of a database that is lent: its sessions know the statements of the tests before."""
        return self._lent[url].engine

    @contextmanager
    def lent(self, *, is_replayed: bool = True) -> Iterator[str]:
        """The URL of a database as the migrations leave it. In the end every rollout in it is replayed."""
        copy = self._free.pop() if self._free else _Copy(_copied(self._template, self._server), self._server)
        self._lent[copy.url] = copy
        try:
            yield copy.url
            if is_replayed and copy.has_steps():
                _replay(copy.unhurried)
        finally:
            del self._lent[copy.url]
            if copy.is_emptied():
                self._free.append(copy)
            else:
                copy.close()
                _drop(self._server, copy.name)

    def close(self) -> None:
        """What is copied goes with the server."""
        for copy in self._free:
            copy.close()


class _Copy:
    """A database, and sessions in it that have read the catalogue: a new one takes as long as all that a test does.

    `engine` is the test's, `unhurried` is for replays, however busy the machine is.
    """

    def __init__(self, name: str, server: EmbeddedServer) -> None:
        self.name, self.url = name, _database(server, name)
        self._connection = self._connected()
        self._schema = _schema(self._connection)
        self.engine, self.unhurried = engine_on(self.url), _unhurried(self.url)
        self._sessions: set[int] = set()
        for engine in (self.engine, self.unhurried):
            event.listen(engine, "connect", lambda session, _: self._sessions.add(session.info.backend_pid))

    def has_steps(self) -> bool:
        """Whether a decision is stored."""
        try:
            return bool(self._asked("SELECT FROM rollout_steps LIMIT 1").rowcount)
        except psycopg.errors.UndefinedTable:
            return False

    def is_emptied(self) -> bool:
        """Empty it. False where somebody may still write in it, or its tables are not what they were."""
        self._asked("SELECT")
        if self.engine.pool.checkedout() or _others(self._connection, self._sessions):  # type: ignore[attr-defined]
            return False
        if self.engine.pool.checkedin() > 1:  # type: ignore[attr-defined]
            self.engine.dispose()  # a test finds one session at most
        self._connection.execute(_EMPTY)
        gone = self._connection.execute("SELECT current_setting('tests.gone')::bigint").fetchone()
        return gone is not None and gone[0] <= _MOST_ROWS and _schema(self._connection) == self._schema

    def close(self) -> None:
        self._end_sessions()
        self._connection.close()

    def _end_sessions(self) -> None:
        self.engine.dispose()
        self.unhurried.dispose()

    def _asked(self, statement: LiteralString) -> psycopg.Cursor:
        """Connected anew where the test has ended the connection, or the server."""
        try:
            return self._connection.execute(statement)
        except psycopg.OperationalError:
            self._end_sessions()
            self._connection.close()
            self._connection = self._connected()
            return self._connection.execute(statement)

    def _connected(self) -> psycopg.Connection:
        return psycopg.connect(self.url, autocommit=True, application_name=CLEANER)


def migrated_template(server: EmbeddedServer) -> str:
    """The name of a new database that all migrations have run in."""
    url = _database(server, _TEMPLATE)
    _administer(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_TEMPLATE)))
    engine = engine_on(url)
    upgrade(engine)
    engine.dispose()
    return _TEMPLATE


def engine_on(url: str, application: str = "rollway") -> Engine:
    """One more engine on a database, as another worker process has one."""
    return make_engine(DatabaseSettings(url=url), application)


@contextmanager
def copy_of(template: str, server: EmbeddedServer) -> Iterator[str]:
    """The URL of a database that is gone at the end."""
    name = _copied(template, server)
    try:
        yield _database(server, name)
    finally:
        _drop(server, name)


@contextmanager
def without_tables(server: EmbeddedServer) -> Iterator[str]:
    """The URL of a database that no migration has seen; it is gone at the end."""
    name = f"empty_{next(_numbers)}"
    _administer(server, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield _database(server, name)
    finally:
        _drop(server, name)


def schema_written(engine: Engine) -> str:
    """What migrations/schema.json should be, from a database that the migrations alone have made.

    Without what they add where PostgreSQL has not it itself: what is more than the file is no fault.
    """
    parts = in_transaction(engine, schema_parts)
    parts.pop("function uuidv7", None)
    return json.dumps(parts, indent=1, ensure_ascii=False) + "\n"


def replay(url: str) -> None:
    """Each decision that is stored must come out again, and each rollout in which nothing failed be as planned."""
    engine = _unhurried(url)
    try:
        _replay(engine)
    finally:
        engine.dispose()


def _replay(engine: Engine) -> None:
    report = sum(replay_pages(engine), ReplayReport())
    assert report.differing == (), "\n".join(map(str, report.differing))
    in_transaction(engine, hold_against_their_plans)


def _unhurried(url: str) -> Engine:
    return make_engine(DatabaseSettings(url=url).without_limits(), CLEANER)


def _copied(template: str, server: EmbeddedServer) -> str:
    name = f"test_{next(_numbers)}"
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy").format(
        sql.Identifier(name), sql.Identifier(template)
    )
    _administer(server, create)
    return name


def _drop(server: EmbeddedServer, name: str) -> None:
    _administer(server, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _schema(connection: psycopg.Connection) -> str:
    return str(connection.execute(_SCHEMA).fetchone())


def _others(connection: psycopg.Connection, ours: set[int]) -> bool:
    """Whether somebody else is connected; who has just gone is waited for."""
    for _ in range(_LOOKS):
        found = connection.execute(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND pid <> ALL(%s) LIMIT 1",
            [list(ours)],
        )
        if not found.rowcount:
            return False
        time.sleep(0.01)
    return True


def _database(server: EmbeddedServer, name: str) -> str:
    return f"{server.url.rpartition('/')[0]}/{name}"


def _administer(server: EmbeddedServer, statement: sql.Composed) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(statement)
