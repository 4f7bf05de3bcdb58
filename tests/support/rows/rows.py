"""What stands in Postgres, as tests compare it, and who waits for a lock there."""

from typing import Any

from sqlalchemy import Engine

from tests.support.rows.deployments import read
from tests.support.stack.waiting import eventually


def tables(engine: Engine) -> list[str]:
    """The names of our tables."""
    found = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'alembic_version'"
    return [row["tablename"] for row in read(engine, found)]


def everything(engine: Engine) -> dict[str, list[str]]:
    """Every row of every table."""
    return {name: sorted(str(row) for row in read(engine, f"SELECT * FROM {name}")) for name in tables(engine)}


def history(engine: Engine) -> list[dict[str, Any]]:
    """The timeline; `lasted` is from its first to its last repetition."""
    return read(engine, "SELECT *, updated_at - created_at AS lasted FROM deployment_history ORDER BY created_at")


def told(engine: Engine) -> list[tuple[str, str, str]]:
    """Of each record of the timeline its phase, its actor and its message."""
    return [(record["phase"], record["actor"], record["message"]) for record in history(engine)]


def steps(engine: Engine) -> list[dict[str, Any]]:
    return read(engine, "SELECT * FROM rollout_steps ORDER BY rollout_id, step_no")


def wait_until_blocked(engine: Engine) -> None:
    """Until somebody waits for a lock of ours."""
    eventually(
        lambda: read(
            engine, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
    )
