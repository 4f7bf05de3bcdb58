"""What the database keeps of commands."""

from sqlalchemy import Engine

from db.schema.tables import metadata
from tests.support.deployments import read
from tests.support.waiting import eventually

OTHER_SPEC = {"command": ["sleep", "61"]}


def everything(engine: Engine) -> dict[str, list[str]]:
    """Every row of every table."""
    return {name: sorted(str(row) for row in read(engine, f"SELECT * FROM {name}")) for name in metadata.tables}


def history(engine: Engine) -> list[tuple[str, str, str]]:
    rows = read(engine, "SELECT phase, actor, message FROM deployment_history ORDER BY created_at")
    return [(row["phase"], row["actor"], row["message"]) for row in rows]


def _wait_until_blocked(engine: Engine) -> None:
    """Until somebody waits for a lock of ours."""
    eventually(
        lambda: read(
            engine, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
    )
