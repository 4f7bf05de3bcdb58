"""The reads behind event streams: which deployments have changed since the last look, and what was noted of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from db.views.deployments import DeploymentView, deployments_by_id, existing_deployments
from db.views.timeline import HistoryView

OVERLAP = timedelta(seconds=20)
"""A record is dated when it is written and seen when that is committed, which no transaction puts off for so long."""

_STATES = "SELECT id, version, history_id, reason FROM deployments WHERE lifecycle <> 'destroyed'"

_NOTED = """
    SELECT h.id, d.name AS deployment, h.phase, h.result, h.error_code, h.target, h.actor, h.message, h.attempts,
           h.rollout_id, h.created_at, h.updated_at
      FROM deployments d
      JOIN LATERAL (SELECT * FROM deployment_history
                     WHERE deployment_id = d.id AND updated_at > %(since)s
                     ORDER BY updated_at DESC LIMIT %(limit)s) h ON true
     WHERE (%(ids)s::uuid[] IS NULL OR d.id = ANY(%(ids)s)) AND (%(names)s::text[] IS NULL OR d.name = ANY(%(names)s))
     ORDER BY h.updated_at DESC, h.id DESC LIMIT %(limit)s
"""

_NOW = "SELECT clock_timestamp()"

State = tuple[int, UUID | None, str]
"""Of a deployment: its version, its last record and what it waits for. One of them is another after each change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedView(HistoryView):
    """A record of the timeline, with its deployment. It comes again when it is merged with a newer one."""

    id: UUID
    deployment: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What there is at the database's time `at`, and what is new of it."""

    at: datetime
    states: Mapping[UUID, State]
    deployments: Sequence[DeploymentView] = ()
    noted: Sequence[NotedView] = ()


def changes_since(connection: Connection[Any], known: Mapping[UUID, State], since: datetime | None) -> Changes:
    """The deployments whose states are not the `known` ones, those that are gone too, and their records `since`."""
    ((at,),) = connection.execute(_NOW).fetchall()
    states = {row[0]: (row[1], row[2], row[3]) for row in connection.execute(_STATES)}
    changed = [found for found in {**known, **states} if known.get(found) != states.get(found)]
    if since is None or not changed:
        return Changes(at, states)
    return Changes(at, states, deployments_by_id(connection, changed), _noted(connection, since, ids=changed))


def caught_up(connection: Connection[Any], names: Sequence[str] | None, since: datetime) -> Changes:
    """Every deployment as it is, those of these names or all, and their records `since`, the newest thousand."""
    ((at,),) = connection.execute(_NOW).fetchall()
    found = existing_deployments(connection, names)
    return Changes(at, {}, found, _noted(connection, since, names=names))


def _noted(
    connection: Connection[Any],
    since: datetime,
    *,
    ids: Iterable[UUID] | None = None,
    names: Sequence[str] | None = None,
    limit: int = 1000,
) -> list[NotedView]:
    asked = {
        "since": since - OVERLAP,
        "ids": None if ids is None else list(ids),
        "names": None if names is None else list(names),
        "limit": limit,
    }
    cursor = connection.cursor(row_factory=dict_row)
    return [NotedView(**row) for row in cursor.execute(_NOTED, asked).fetchall()[::-1]]
