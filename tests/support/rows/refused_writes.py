"""A Postgres that refuses what is written to a table, with any of its error codes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import LiteralString

from sqlalchemy import Engine

from tests.support.rows.deployments import write

TRANSACTION_TIMEOUT = "25P04"
"""A transaction that took longer than `transaction_timeout` is ended with this."""


@contextmanager
def refused_writes(engine: Engine, table: LiteralString, code: LiteralString) -> Iterator[None]:
    body = f"BEGIN RAISE EXCEPTION USING ERRCODE = '{code}'; END"
    write(engine, f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
    write(engine, f"CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON {table} EXECUTE FUNCTION refuse()")
    try:
        yield
    finally:
        write(engine, "DROP FUNCTION refuse CASCADE")
