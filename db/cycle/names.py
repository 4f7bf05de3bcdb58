"""Reads what is told beside a decision: what people call a revision, and which trace asked for a rollout."""

from collections.abc import Collection
from uuid import UUID

from psycopg import Connection


def revision_names(connection: Connection, ids: Collection[UUID]) -> dict[UUID, str]:
    """The name of each of these revisions."""
    return dict(connection.execute("SELECT id, name FROM revisions WHERE id = ANY(%s)", (list(ids),)).fetchall())


def traceparents(connection: Connection, rollout_ids: Collection[UUID]) -> dict[UUID, str]:
    """The trace that asked for each of these rollouts, where one is known."""
    query = "SELECT id, traceparent FROM rollouts WHERE id = ANY(%s) AND traceparent IS NOT NULL"
    return dict(connection.execute(query, (list(rollout_ids),)).fetchall())
