"""Whether a request that comes a second time asks for the same as at first, whichever release stored it."""

from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb
from pydantic import ValidationError

from domain.commands.base import Command


def is_asked_again(connection: Connection, command: Command, stored: dict[str, Any], payload: dict[str, Any]) -> bool:
    """Compare the payload that is stored with that of today; fields that came in between count with their defaults.

    Postgres compares: it writes 1e23 in full, which Python reads as another number than the one that was sent.
    """
    try:
        first = type(command).model_validate({**stored, "request_id": command.request_id})
    except ValidationError:
        return False
    asked = first.model_dump(mode="json", exclude={"request_id"})
    return connection.execute("SELECT %s = %s", (Jsonb(asked), Jsonb(payload))).fetchone() == (True,)
