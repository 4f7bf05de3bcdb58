"""Freezes that are on by the clock of Postgres."""

from datetime import timedelta
from typing import Any

from sqlalchemy import Engine

from tests.support.rows.deployments import ask, read


def freeze(engine: Engine, name: str = "holidays", *, seconds: float = 3600, **given: Any) -> None:
    """One that began a minute ago and ends in so many seconds."""
    (row,) = read(engine, "SELECT clock_timestamp() AS now")
    window = {"starts_at": row["now"] - timedelta(minutes=1), "ends_at": row["now"] + timedelta(seconds=seconds)}
    ask(engine, "set_freeze", freeze=name, **window, **given)


def thaw(engine: Engine, name: str = "holidays") -> None:
    ask(engine, "delete_freeze", freeze=name)


def begin(engine: Engine, *names: str, revision: str = "v2") -> None:
    for name in names:
        ask(engine, "activate_revision", deployment=name, revision=revision)
