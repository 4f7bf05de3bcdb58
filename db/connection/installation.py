"""Which installation a database is of, and which contract its tables follow."""

from psycopg import Connection
from psycopg.rows import class_row

from domain.installation.contract import Installation


def read_installation(connection: Connection) -> Installation:
    """The one row, which the first migration makes. Raises psycopg's UndefinedTable before that."""
    rows = connection.cursor(row_factory=class_row(Installation)).execute("SELECT id, contract FROM installation")
    (installation,) = rows.fetchall()
    return installation
