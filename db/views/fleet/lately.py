"""The read for people: what has happened in the whole fleet within the last hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from db.views.timeline import HistoryView

# by the index of each deployment: history is written all the time, so that one more index would cost each of its rows
_LATELY = """
    SELECT d.name AS deployment, h.*
      FROM deployments d CROSS JOIN LATERAL (
           SELECT phase, result, error_code, target, actor, message, attempts, rollout_id, created_at, updated_at
             FROM deployment_history
            WHERE deployment_id = d.id AND updated_at > clock_timestamp() - interval '1 hour'
            ORDER BY updated_at DESC LIMIT %(limit)s) h
     WHERE %(names)s::text[] IS NULL OR d.name = ANY(%(names)s)
     ORDER BY h.updated_at DESC, d.name LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HappenedView(HistoryView):
    """One line of the timeline of a deployment, which is named."""

    deployment: str


def lately(connection: Connection[Any], names: Sequence[str] | None, limit: int) -> list[HappenedView]:
    """What happened to these deployments, or all, within the last hour: the newest first."""
    asked = {"names": None if names is None else list(names), "limit": limit}
    return connection.cursor(row_factory=class_row(HappenedView)).execute(_LATELY, asked).fetchall()
