"""What the database keeps of a rollout."""

from typing import Any

from sqlalchemy import Engine

from tests.support.deployments import (
    read,
)


def history(engine: Engine) -> list[dict[str, Any]]:
    return read(engine, "SELECT *, updated_at - created_at AS lasted FROM deployment_history ORDER BY created_at")


def steps(engine: Engine) -> list[dict[str, Any]]:
    return read(engine, "SELECT * FROM rollout_steps ORDER BY rollout_id, step_no")
