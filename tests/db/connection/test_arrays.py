"""Columns of values reach Postgres as they are, whatever their type, and with nulls among them."""

import struct
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from pydantic_core import to_json
from sqlalchemy import Engine

from db.connection.arrays import ARRAYS
from db.connection.transactions import transaction

VALUES: dict[str, list[object]] = {
    "bool": [True, False],
    "float8": [0.5, -1e300, float("inf")],
    "int4": [0, -(2**31), 2**31 - 1],
    "int8": [0, -(2**63), 2**63 - 1],
    "interval": [timedelta(days=-3, microseconds=7), timedelta(0)],
    "jsonb": [{"a": [1, None, "ü"]}, [], "text"],
    "text": ["", "ü", "NULL", '{"a", \\b}'],
    "timestamptz": [datetime(1999, 1, 2, 3, 4, 5, 678901, UTC), datetime(2026, 11, 22, tzinfo=UTC)],
    "uuid": [UUID(int=0), UUID(int=2**128 - 1)],
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_what_is_sent_is_what_arrives(engine: Engine, kind: str) -> None:
    sent = [to_json(value) if kind == "jsonb" else value for value in VALUES[kind]]
    for values, expected in ((sent, VALUES[kind]), ([None, *sent], [None, *VALUES[kind]]), ([None], [None]), ([], [])):
        with transaction(engine) as connection:
            query = f"SELECT value FROM unnest(%(values)b::{kind}[]) WITH ORDINALITY AS u (value, n) ORDER BY n"
            rows = connection.execute(query, {"values": ARRAYS[kind](values)}).fetchall()
        assert [value for (value,) in rows] == expected


def test_a_number_that_the_column_cannot_hold_is_refused(engine: Engine) -> None:
    with pytest.raises(struct.error, match="format requires"), transaction(engine) as connection:
        connection.execute("SELECT %(values)b::int4[]", {"values": ARRAYS["int4"]([2**31])})
