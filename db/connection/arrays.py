"""Columns of values as arrays in Postgres' binary form. psycopg would look for the type in the values of each list.

Rows by name: those that are read, as NamedTuples, and those that are sent, as one array for each column.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import repeat
from operator import add, attrgetter
from struct import Struct
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar
from uuid import UUID

import psycopg
from psycopg import Connection, Cursor, pq
from psycopg.adapt import Dumper, PyFormat, Transformer
from psycopg.rows import RowMaker

_HEAD = Struct("!iiIii")
_LENGTH = Struct("!i")
_NULL = _LENGTH.pack(-1)
_JSONB = b"\1"
"""The version of the binary form, before the text."""

Packed = Callable[[Sequence[Any]], Iterable[bytes]]
"""Values in binary form, the length before each; none of them is None. All at once, by functions that are written in C:
a Python call or two for each of thousands would take the most time."""


class Array:
    """Values of one type of Postgres, None among them, as a parameter. Their types are not looked at again."""

    element: ClassVar[int]
    """The number of the type in Postgres."""
    packed: ClassVar[Packed]

    __slots__ = ("values",)

    def __init__(self, values: Sequence[object]) -> None:
        self.values = values


class _ArrayDumper(Dumper):
    format = pq.Format.BINARY

    def dump(self, obj: Array) -> bytes:
        """The form that Postgres' `array_recv` reads: dimensions, nulls or none, type, length, first index; values."""
        values = obj.values
        present = [value for value in values if value is not None]
        packed = type(obj).packed(present)
        has_nulls = len(present) < len(values)
        if has_nulls:
            following = iter(packed)
            packed = [_NULL if value is None else next(following) for value in values]
        return _HEAD.pack(1, has_nulls, obj.element, len(values), 1) + b"".join(packed)


def _array(name: str, packed: Packed) -> type[Array]:
    """The arrays of one type, made known to psycopg."""
    info = psycopg.postgres.types[name]
    kind = type(f"{name}_array", (Array,), {"element": info.oid, "packed": staticmethod(packed), "__slots__": ()})
    psycopg.adapters.register_dumper(kind, type(f"{name}_array_dumper", (_ArrayDumper,), {"oid": info.array_oid}))
    return kind


def _fixed(size: int, form: str) -> Packed:
    pack = Struct(f"!i{form}").pack
    return lambda values: map(pack, repeat(size), values)


def _sized(dump: Callable[[Any], Any]) -> Packed:
    def packed(values: Sequence[object]) -> Iterable[bytes]:
        dumped = [dump(value) for value in values]
        return map(add, map(_LENGTH.pack, map(len, dumped)), dumped)

    return packed


def _uuids(values: Sequence[UUID]) -> Iterable[bytes]:
    return map(_LENGTH.pack(16).__add__, map(int.to_bytes, map(attrgetter("int"), values), repeat(16)))


def _as_psycopg(example: object) -> Packed:
    """The dumper for values such as this one."""
    return _sized(Transformer().get_dumper(example, PyFormat.BINARY).dump)


ARRAYS: Mapping[str, type[Array]] = {
    "bool": _array("bool", _fixed(1, "?")),
    "float8": _array("float8", _fixed(8, "d")),
    "int4": _array("int4", _fixed(4, "i")),
    "int8": _array("int8", _fixed(8, "q")),
    "interval": _array("interval", _as_psycopg(timedelta())),
    "jsonb": _array("jsonb", _sized(_JSONB.__add__)),
    "text": _array("text", _sized(str.encode)),
    "timestamptz": _array("timestamptz", _as_psycopg(datetime.now().astimezone())),
    "uuid": _array("uuid", _uuids),
}
"""Arrays by the name of their type. Values of jsonb are JSON already, as bytes."""
UUIDS = ARRAYS["uuid"]
"""An array for `= ANY(%b)`: psycopg takes one and a half times as long for a list of 250 ids."""


Row_co = TypeVar("Row_co", bound=NamedTuple, covariant=True)


class _NamedRow(Protocol[Row_co]):
    """A row factory like psycopg's `class_row`."""

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

    In the text of a statement it is the rows that are sent as one array for each column, and called `u`:

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
