"""Checks that Rollway works with this Postgres, and reads the installation and the contract of its database."""

from typing import Any

import psycopg
from psycopg import Connection
from psycopg.rows import class_row

from domain.installation.contract import Installation, UnfitServerError, refuse_encoding, refuse_old_postgres


def refuse_unfit(connection: psycopg.Connection[Any], address: str) -> None:
    """Close a new connection to an unfit server, and raise UnfitServerError."""
    try:
        refuse_old_postgres(connection.info.server_version, address)
        refuse_encoding(connection.info.parameter_status("server_encoding") or "UTF8", address)
    except UnfitServerError:
        connection.close()
        raise


def read_installation(connection: Connection) -> Installation:
    """The only row, which the first migration makes. Raises psycopg's UndefinedTable before that."""
    rows = connection.cursor(row_factory=class_row(Installation)).execute("SELECT id, contract FROM installation")
    (installation,) = rows.fetchall()
    return installation
