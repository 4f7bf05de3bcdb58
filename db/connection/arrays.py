"""Columns of values as arrays in Postgres' binary form. psycopg would look for the type in the values of each list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import repeat
from operator import add, attrgetter
from struct import Struct
from typing import Any, ClassVar
from uuid import UUID

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper, PyFormat, Transformer

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
        """As `array_recv` of Postgres reads it: dimensions, nulls or none, type, length, first index; the values."""
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
"""By the name of the type. Values of jsonb are JSON already, as bytes."""
UUIDS = ARRAYS["uuid"]
"""For `= ANY(%b)`: psycopg takes one and a half times as long for a list of 250."""
