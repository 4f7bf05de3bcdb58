"""A request that comes a second time: the answer that is kept for it, and whether it asks for the same as at first."""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb
from pydantic import ValidationError

from domain.commands.base import Command

KEEP_ANSWER = "UPDATE commands SET result = %(result)s WHERE request_id = %(request_id)s"
"""With the values of `answered`."""


def answered(command: Command, result: Mapping[str, Any]) -> dict[str, object]:
    """The values of KEEP_ANSWER."""
    return {"result": Jsonb(result), "request_id": command.request_id}


def is_asked_again(connection: Connection, command: Command, stored: dict[str, Any], payload: dict[str, Any]) -> bool:
    """Compare the payload that any release stored with that of today; new fields count with their defaults.

    Postgres compares: it writes 1e23 in full, which Python reads as another number than the one that was sent.
    """
    try:
        first = type(command).model_validate({**stored, "request_id": command.request_id})
    except ValidationError:
        return False
    asked = first.model_dump(mode="json", exclude={"request_id"})
    return connection.execute("SELECT %s = %s", (Jsonb(asked), Jsonb(payload))).fetchone() == (True,)
