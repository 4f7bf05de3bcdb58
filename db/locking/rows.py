"""Rows by name: those that are read, as NamedTuples, and those that are sent, as one array for each column."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from psycopg import Connection, Cursor
from psycopg.rows import RowMaker

from db.connection.arrays import ARRAYS

Row_co = TypeVar("Row_co", bound=NamedTuple, covariant=True)


class _NamedRow(Protocol[Row_co]):
    """As psycopg's `class_row` has it: a function of any cursor."""

    def __call__(self, cursor: Cursor[Any], /) -> RowMaker[Row_co]: ...


def named_row(kind: type[Row_co]) -> _NamedRow[Row_co]:
    """A row factory: each row as this NamedTuple, as fast as a plain tuple nearly.

    Raises TypeError when the fields are not called as the columns of the query, in their order.
    """
    fields = tuple(name.encode() for name in kind._fields)

    def make_row(cursor: Cursor[Any]) -> RowMaker[Row_co]:
        result = cursor.pgresult  # `description` makes an object for each column
        columns = tuple(map(result.fname, range(result.nfields))) if result else ()
        if columns and columns != fields:
            names = tuple(name.decode() for name in columns if name)
            raise TypeError(f"{kind.__name__} has the fields {kind._fields}, the query has the columns {names}")
        return partial(tuple.__new__, kind)  # `_make`, without a Python frame for each row

    return make_row


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns whose values travel together: their names, and their types in Postgres.

    In the text of a statement it stands for rows that are sent as one array for each column, and called `u`:

        sizes = columns("id uuid, size int4")
        f"UPDATE hats h SET size = u.size FROM {sizes} WHERE h.id = u.id"
        -> ... FROM unnest(%(u.id)b::uuid[], %(u.size)b::int4[]) AS u (id, size) WHERE h.id = u.id
        cursor.execute(..., sizes.arrays([(id_1, 54), (id_2, 57)]))

    A statement that takes rows of two kinds gives one of them another alias.
    """

    types: Mapping[str, str]
    alias: str = "u"

    def __add__(self, other: Self) -> Self:
        return replace(self, types={**self.types, **other.types})

    def called(self, alias: str) -> Self:
        """The columns under another alias."""
        return replace(self, alias=alias)

    def __str__(self) -> str:
        arrays = ", ".join(f"%({self.alias}.{name})b::{kind}[]" for name, kind in self.types.items())
        return f"unnest({arrays}) AS {self.alias} ({', '.join(self.types)})"

    def arrays(self, rows: Iterable[Sequence[object]], **others: object) -> dict[str, object]:
        """The parameters: the rows, whose values stand in the order of the columns, and what else is asked for."""
        value_columns = zip(*rows, strict=True) if (rows := list(rows)) else [()] * len(self.types)
        typed_columns = zip(self.types.items(), value_columns, strict=True)
        return {**{f"{self.alias}.{name}": ARRAYS[kind](values) for (name, kind), values in typed_columns}, **others}

    def add(self, connection: Connection, table: str, rows: Iterable[Sequence[object]]) -> None:
        """Add rows, whose values stand in the order of the columns, to a table: one statement.

        No COPY, which a pipeline does not take: it is no faster here, since indexes and foreign keys take the time.
        """
        names = ", ".join(self.types)
        connection.execute(f"INSERT INTO {table} ({names}) SELECT * FROM {self}", self.arrays(rows))


def columns(declared: str) -> Columns:
    """`columns("id uuid, size int4")`. The types are those of ARRAYS."""
    return Columns(dict(column.split() for column in declared.split(",")))
