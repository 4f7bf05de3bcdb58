"""Rows by name: those that are read, as NamedTuples, and those that are sent, as one array for each column."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, Self, TypeVar

from psycopg import Connection, Cursor
from psycopg.rows import RowMaker

from db.arrays import ARRAYS

Row_co = TypeVar("Row_co", bound=NamedTuple, covariant=True)


class _NamedRow(Protocol[Row_co]):
    """As psycopg's `class_row` has it: a function of any cursor."""

    def __call__(self, cursor: Cursor[Any], /) -> RowMaker[Row_co]: ...


def named_row(kind: type[Row_co]) -> _NamedRow[Row_co]:
    """A row factory: each row as this NamedTuple, as fast as a plain tuple nearly.

    Raises TypeError when the fields are not called as the columns of the query, in their order.
    """

    def make_row(cursor: Cursor[Any]) -> RowMaker[Row_co]:
        found = cursor.pgresult  # and not `cursor.description`, which is a tenth of what a small chunk costs
        columns = tuple((found.fname(number) or b"").decode() for number in range(found.nfields)) if found else ()
        if columns and columns != kind._fields:
            raise TypeError(f"{kind.__name__} has the fields {kind._fields}, the query has the columns {columns}")
        return partial(tuple.__new__, kind)  # `_make`, without a Python frame for each row

    return make_row


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns whose values travel together: their names, and their types in Postgres.

    In the text of a statement it stands for rows that are sent as one array for each column, and called `u`:

        sizes = columns("id uuid, size int4")
        f"UPDATE hats h SET size = u.size FROM {sizes} WHERE h.id = u.id"
        -> ... FROM unnest(%(id)b::uuid[], %(size)b::int4[]) AS u (id, size) WHERE h.id = u.id
        cursor.execute(..., sizes.arrays([(id_1, 54), (id_2, 57)]))

    The parameters are called as the columns are, so a further parameter of the statement needs another name.
    """

    types: Mapping[str, str]

    def __add__(self, other: Self) -> Self:
        return type(self)({**self.types, **other.types})

    def __str__(self) -> str:
        arrays = ", ".join(f"%({name})b::{kind}[]" for name, kind in self.types.items())
        return f"unnest({arrays}) AS u ({', '.join(self.types)})"

    def arrays(self, rows: Iterable[Sequence[object]], **others: object) -> dict[str, object]:
        """The parameters: the rows, whose values stand in the order of the columns, and what else is asked for."""
        found = zip(*rows, strict=True) if (rows := list(rows)) else [()] * len(self.types)
        named = zip(self.types.items(), found, strict=True)
        return {**{name: ARRAYS[kind](values) for (name, kind), values in named}, **others}

    def add(self, connection: Connection, table: str, rows: Iterable[Sequence[object]]) -> None:
        """Add rows, whose values stand in the order of the columns, to a table: one statement.

        No COPY, which a pipeline does not take: it is no faster here, since indexes and foreign keys take the time.
        """
        names = ", ".join(self.types)
        connection.execute(f"INSERT INTO {table} ({names}) SELECT u.* FROM {self}", self.arrays(rows))


def columns(declared: str) -> Columns:
    """`columns("id uuid, size int4")`. The types are those of ARRAYS."""
    return Columns(dict(column.split() for column in declared.split(",")))
