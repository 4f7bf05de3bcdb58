"""Two types of Postgres that SQLAlchemy does not know: with them a commit is compared with a snapshot, exactly."""

from typing import Any

from sqlalchemy.types import UserDefinedType


class Xid8(UserDefinedType[str]):
    """The id of a transaction."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:  # noqa: ANN401  (as SQLAlchemy declares it)
        """Its name in Postgres."""
        return "xid8"


class PgSnapshot(UserDefinedType[str]):
    """Which transactions a statement saw."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:  # noqa: ANN401  (as SQLAlchemy declares it)
        """Its name in Postgres."""
        return "pg_snapshot"
