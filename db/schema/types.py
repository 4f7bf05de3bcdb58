"""Two types of Postgres that SQLAlchemy does not know: with them a commit is compared with a snapshot, exactly."""

from typing import Any

from sqlalchemy.types import UserDefinedType


class PostgresType(UserDefinedType[str]):
    """The type that Postgres calls `name`."""

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = name

    def get_col_spec(self, **_: Any) -> str:  # noqa: ANN401  (as SQLAlchemy declares it)
        """As it stands in CREATE TABLE."""
        return self.name


TRANSACTION_ID = PostgresType("xid8")
SNAPSHOT = PostgresType("pg_snapshot")
"""Which transactions a statement saw."""
