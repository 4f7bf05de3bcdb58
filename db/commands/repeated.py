"""A request that comes a second time: the answer that is kept for it, and whether it asks for the same as at first."""

from collections.abc import Mapping
from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb
from pydantic import ValidationError

from domain.commands.base import Command
from domain.words.errors import RequestIdReusedError

KEEP_ANSWER = "UPDATE commands SET result = %(result)s WHERE request_id = %(request_id)s"
"""With the values of `answered`."""


def answered(command: Command, result: Mapping[str, Any]) -> dict[str, object]:
    """The values of KEEP_ANSWER."""
    return {"result": Jsonb(result), "request_id": command.request_id}


def answer_again(connection: Connection, command: Command, payload: dict[str, Any]) -> dict[str, Any]:
    """What was answered the first time. Raises RequestIdReusedError."""
    query = "SELECT payload, result FROM commands WHERE request_id = %s AND name = %s"
    row = connection.execute(query, (command.request_id, command.task)).fetchone()
    if row is None or not _is_asked_again(connection, command, row[0], payload):
        message = (
            f"request_id {command.request_id!r} was used for another request; every request needs an id of its own"
        )
        raise RequestIdReusedError(message, request_id=command.request_id)
    answer: dict[str, Any] = row[1]
    return answer


def _is_asked_again(connection: Connection, command: Command, stored: dict[str, Any], payload: dict[str, Any]) -> bool:
    """Compare the payload that any release stored with that of today; new fields count with their defaults.

    Postgres compares: it writes 1e23 in full, which Python reads as another number than the one that was sent.
    """
    try:
        first = type(command).model_validate({**stored, "request_id": command.request_id})
    except ValidationError:
        return False
    asked = first.model_dump(mode="json", exclude={"request_id"})
    return connection.execute("SELECT %s = %s", (Jsonb(asked), Jsonb(payload))).fetchone() == (True,)
