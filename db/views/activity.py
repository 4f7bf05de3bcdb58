"""The reads for people: what happened in the whole fleet, filtered and in pages, the newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row

from db.views.pages import Page, history_cursor, history_place
from db.views.timeline import HistoryView
from domain.model.deed_kinds import OF_ADMINS

_COLUMNS = "id, phase, result, error_code, target, actor, message, attempts, rollout_id, created_at, updated_at"

_BEFORE = """
    updated_at >= coalesce(%(since)s, clock_timestamp() - interval '1 hour')
    AND (%(until)s::timestamptz IS NULL OR updated_at < %(until)s)
    AND (%(at)s::timestamptz IS NULL OR (updated_at, id) < (%(at)s, %(before)s))
    AND (%(who)s::text IS NULL OR actor = %(who)s) AND (%(phases)s::text[] IS NULL OR phase = ANY(%(phases)s))
"""
_NEWEST = "ORDER BY updated_at DESC, id DESC LIMIT %(limit)s"
_NAMED = "(%(names)s::text[] IS NULL OR d.name = ANY(%(names)s))"

# by an index of deeds alone, which are few
_DEEDS = f"""
    SELECT d.name AS deployment, h.* FROM (
           SELECT deployment_id, {_COLUMNS} FROM deployment_history
            WHERE result = 'asked' AND {_BEFORE}) h JOIN deployments d ON d.id = h.deployment_id
     WHERE {_NAMED} {_NEWEST}
"""

# by the index of each deployment: history is written all the time, so that one more index would cost each of its rows
_EVERYTHING = f"""
    SELECT d.name AS deployment, h.* FROM deployments d CROSS JOIN LATERAL (
           SELECT deployment_id, {_COLUMNS} FROM deployment_history
            WHERE deployment_id = d.id AND {_BEFORE} {_NEWEST}) h
     WHERE {_NAMED} {_NEWEST}
"""

_OF_FLEET = f"""
    SELECT '' AS deployment, NULL::uuid AS deployment_id, f.* FROM (
           SELECT id, phase, 'asked' AS result, NULL AS error_code, target, actor, message, 1 AS attempts,
                  NULL::uuid AS rollout_id, created_at, created_at AS updated_at FROM fleet_history) f
     WHERE %(is_of_fleet)s AND {_BEFORE} AND (%(is_admin)s OR phase <> ALL(%(of_admins)s)) {_NEWEST}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HappenedView(HistoryView):
    """A line of the timeline, with the deployment's name; the name is empty where it belongs to no deployment."""

    deployment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityFilter:
    """The records that are wanted, of those that the reader may see.

    `names`: only of these deployments, and of nothing else; None: of everything. `since`: left out, the last hour.
    `phases`: only these; `is_of_people`: only what people did. `is_admin`: whether tokens and sign-ins are shown too.
    """

    names: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    who: str | None = None
    phases: Sequence[str] | None = None
    is_of_people: bool = False
    is_admin: bool = False


def activity(connection: Connection[Any], selection: ActivityFilter, cursor: str, limit: int) -> Page[HappenedView]:
    """The records, the newest first."""
    at, before = history_place(cursor)
    parameters = {
        "names": None if selection.names is None else list(selection.names),
        "since": selection.since,
        "until": selection.until,
        "who": selection.who,
        "phases": None if selection.phases is None else list(selection.phases),
        "at": at,
        "before": before,
        "limit": limit + 1,
        "is_of_fleet": selection.names is None,
        "is_admin": selection.is_admin,
        "of_admins": list(OF_ADMINS),
    }
    of_deployments = _DEEDS if selection.is_of_people else _EVERYTHING
    query = f"({of_deployments}) UNION ALL ({_OF_FLEET}) {_NEWEST}"
    rows = connection.cursor(row_factory=dict_row).execute(query, parameters).fetchall()
    last = history_cursor(rows[limit - 1]) if len(rows) > limit else None
    items = [HappenedView(**{name: row[name] for name in HappenedView.__dataclass_fields__}) for row in rows[:limit]]
    return Page(items, last)
