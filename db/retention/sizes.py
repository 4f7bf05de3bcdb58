"""How big each table is."""

from dataclasses import dataclass

from psycopg import Connection
from psycopg.rows import class_row

_SIZES = """
    SELECT relname AS name, n_live_tup AS rows, pg_total_relation_size(relid) AS bytes
      FROM pg_stat_user_tables WHERE schemaname = current_schema() ORDER BY 3 DESC, 1
"""


@dataclass(frozen=True, slots=True)
class TableSize:
    """A table, with its indexes. `rows`: as Postgres estimates them."""

    name: str
    rows: int
    bytes: int


def table_sizes(connection: Connection) -> list[TableSize]:
    """Every table, the biggest first."""
    return connection.cursor(row_factory=class_row(TableSize)).execute(_SIZES).fetchall()
