"""Writes the history of what belongs to no deployment: freezes, hosts, tokens, and sessions of the page."""

from typing import Any

from psycopg import Connection

_RECORD = "INSERT INTO fleet_history (phase, target, actor, message) VALUES (%s, %s, %s, %s)"


def record_deed(connection: Connection[Any], phase: str, target: str, actor: str, message: str) -> None:
    """Add a record. `target`: the name of the freeze, host or token, or the id of the session."""
    connection.execute(_RECORD, (phase, target, actor, message))
