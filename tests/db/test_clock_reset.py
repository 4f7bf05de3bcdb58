"""The repair of times that lie ahead: over each column of a time that there is, whatever else is known of its row."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from psycopg import Connection, sql
from psycopg.rows import dict_row
from sqlalchemy import Engine

from db.clock_reset import count_from_now, count_on
from db.connection.transactions import transaction
from tests.support.pictures.pictures import PROVISIONING, READY
from tests.support.rows.deployments import make_deployment

REPAIRED = ("routes", "deployments", "rollouts")
MAY_LIE_AHEAD = {
    "routes": {"parked_until", "kept_until", "next_start_at"},
    "deployments": {"due_at", "retry_at"},
    "rollouts": {"deadline"},
}
"""Deadlines, which come later by as much."""
IS_OVER = {"routes": {"created_at", "stopped_at"}, "deployments": {"created_at"}, "rollouts": {"ended_at"}}
"""Nothing is waited for by these."""
_TIMES = """
    SELECT table_name, column_name FROM information_schema.columns
     WHERE table_schema = current_schema() AND data_type = 'timestamp with time zone' ORDER BY 1, 2
"""
_NO_CHECK = sql.SQL("ALTER TABLE {} DROP CONSTRAINT {}")
_CHECKS = (
    "SELECT conrelid::regclass::text, conname FROM pg_constraint WHERE contype = 'c' AND conrelid = ANY(%s::regclass[])"
)


def times(connection: Connection) -> list[tuple[str, str]]:
    return connection.execute(_TIMES).fetchall()


def rows(connection: Connection) -> Mapping[str, list[dict[str, Any]]]:
    """Each time of each table."""
    columns: dict[str, list[str]] = {}
    for table, column in times(connection):
        columns.setdefault(table, []).append(column)
    cursor = connection.cursor(row_factory=dict_row)
    queries = {
        table: sql.SQL("SELECT {} FROM {} ORDER BY ctid::text").format(
            sql.SQL(", ").join(map(sql.Identifier, names)), sql.Identifier(table)
        )
        for table, names in columns.items()
    }
    return {table: cursor.execute(query).fetchall() for table, query in queries.items()}


def empty(found: Mapping[str, list[dict[str, Any]]]) -> dict[tuple[str, str], int]:
    """How many rows have no such time."""
    return {
        (table, column): sum(row[column] is None for row in rows_of)
        for table, rows_of in found.items()
        for column in (rows_of[0] if rows_of else ())
    }


def _back(connection: Connection) -> object:
    return count_from_now(connection)


def _forward(connection: Connection) -> object:
    """As where the clock was set by two hours, so that nothing has been since."""
    ((before,),) = connection.execute("SELECT clock_timestamp() + interval '2 hours'").fetchall()
    return count_on(connection, 7200, before)


def repaired(
    engine: Engine, table: str, column: str, repair: Callable[[Connection], object] = _back
) -> tuple[dict[tuple[str, str], int], dict[tuple[str, str], int], bool]:
    """The empty times before and after, where this one lay ahead; and whether it still does."""
    with transaction(engine) as connection, connection.transaction(force_rollback=True):
        for owner, check in connection.execute(_CHECKS, (list(REPAIRED),)).fetchall():
            connection.execute(_NO_CHECK.format(sql.Identifier(owner), sql.Identifier(check)))
        connection.execute("SET LOCAL session_replication_role = replica")
        ahead = sql.SQL("UPDATE {} SET {} = clock_timestamp() + interval '1 hour'")
        connection.execute(ahead.format(sql.Identifier(table), sql.Identifier(column)))
        connection.execute("SET LOCAL session_replication_role = origin")
        before = empty(rows(connection))
        repair(connection)
        is_ahead = sql.SQL("SELECT bool_or({} > clock_timestamp()) FROM {}")
        ((still,),) = connection.execute(is_ahead.format(sql.Identifier(column), sql.Identifier(table))).fetchall()
        return before, empty(rows(connection)), still


def all_times(engine: Engine) -> list[tuple[str, str]]:
    with transaction(engine) as connection:
        return [(table, column) for table, column in times(connection) if table in REPAIRED]


@pytest.mark.parametrize("repair", [_back, _forward])
@pytest.mark.parametrize("picture", ["■■◇~|■□", "■", "◇"])
def test_no_repair_fills_what_was_empty(engine: Engine, picture: str, repair: Callable[[Connection], object]) -> None:
    """Whatever lies ahead alone, and in whatever status: least() and greatest() pass by what is empty."""
    make_deployment(engine, picture, status=PROVISIONING if "|" in picture else READY)
    wrong = []
    for table, column in all_times(engine):
        before, after, _ = repaired(engine, table, column, repair)
        wrong += [(table, column, *each) for each in before if after[each] != before[each]]
    assert wrong == []


def test_each_time_that_was_is_now_and_deadlines_stay(engine: Engine) -> None:
    """A time that is new stands in one of the lists."""
    make_deployment(engine, "■■◇~|■□", status=PROVISIONING)
    still = {(table, column) for table, column in all_times(engine) if repaired(engine, table, column)[2]}
    assert still == {(table, column) for table in REPAIRED for column in MAY_LIE_AHEAD[table] | IS_OVER[table]}
