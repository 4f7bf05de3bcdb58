"""Rows into a table by binary COPY: what a chunk adds, in one statement for each table."""

from collections.abc import Iterable, Mapping, Sequence
from typing import LiteralString

import psycopg
from psycopg import sql


def copy_rows(
    connection: psycopg.Connection,
    table: LiteralString,
    columns: Mapping[LiteralString, LiteralString],
    rows: Iterable[Sequence[object]],
) -> None:
    """Insert `rows`, whose values stand in the order of `columns`: their names, and their types in Postgres."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    query = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table), names)
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        copy.set_types(list(columns.values()))
        for row in rows:
            copy.write_row(row)
