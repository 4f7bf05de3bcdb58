"""What has changed: the reads behind event streams."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row, scalar_row

from db.views.deployment_view import DeploymentView
from db.views.deployment_views import deployments_by_id, existing_deployments
from db.views.timeline import HistoryView
from domain.model.picture import LATE

OVERLAP = timedelta(seconds=20)
"""A record is dated when it is written and visible when that is committed, which no transaction delays for longer."""
_MOST_NOTED = 10_000
_MOST_MISSED = 1_000

_STATES = """
    SELECT id, version, history_id, reason, coalesce(due_at < clock_timestamp() - %s, false)
      FROM deployments WHERE lifecycle <> 'destroyed'
"""

_GONE = """
    SELECT id FROM deployments
     WHERE lifecycle = 'destroyed' AND phase_started_at > %(since)s
       AND (%(names)s::text[] IS NULL OR name = ANY(%(names)s))
     ORDER BY phase_started_at DESC LIMIT %(limit)s
"""

_NOTED = """
    SELECT h.id, d.name AS deployment, h.phase, h.result, h.error_code, h.target, h.actor, h.message, h.attempts,
           h.rollout_id, h.created_at, h.updated_at
      FROM deployments d
      JOIN LATERAL (SELECT * FROM deployment_history
                     WHERE deployment_id = d.id AND updated_at > %(since)s
                     ORDER BY updated_at DESC LIMIT %(limit)s) h ON true
     WHERE %(ids)s::uuid[] IS NULL OR d.id = ANY(%(ids)s)
     ORDER BY h.updated_at DESC, h.id DESC LIMIT %(limit)s
"""

_NOW = "SELECT clock_timestamp()"

State = tuple[int, UUID | None, str, bool]
"""What is compared of a deployment: its version, its last record, what it waits for, and whether it is late.

One of them is another after each change. When it is looked at next is none: a wait moves that every few seconds.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedView(HistoryView):
    """A record of the timeline, with its deployment. It comes again when it is merged with a newer one."""

    id: UUID
    deployment: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The fleet at the database's time `at`, and what is new of it."""

    at: datetime
    states: Mapping[UUID, State]
    deployments: Sequence[DeploymentView] = ()
    noted: Sequence[NotedView] = ()


def changes_since(connection: Connection[Any], before: Mapping[UUID, State], since: datetime | None) -> Changes:
    """The deployments whose states are not the `before` ones, those that are gone too, and their records `since`."""
    ((at,),) = connection.execute(_NOW).fetchall()
    states: dict[UUID, State] = {row[0]: (*row[1:],) for row in connection.execute(_STATES, (LATE,))}
    differing = [
        deployment_id
        for deployment_id in {**before, **states}
        if before.get(deployment_id) != states.get(deployment_id)
    ]
    if since is None or not differing:
        return Changes(at, states)
    return Changes(
        at, states, deployments_by_id(connection, differing), _records(connection, since, _MOST_NOTED, differing)
    )


def caught_up(connection: Connection[Any], names: Sequence[str] | None, since: datetime) -> Changes:
    """Every deployment as it is, those of these names or all, after those that went `since`, and the records since.

    The newest thousand of what went, and of the records.
    """
    ((at,),) = connection.execute(_NOW).fetchall()
    parameters = {"since": since - OVERLAP, "names": None if names is None else list(names), "limit": _MOST_MISSED}
    gone = connection.cursor(row_factory=scalar_row).execute(_GONE, parameters).fetchall()
    views = [*deployments_by_id(connection, gone), *existing_deployments(connection, names)]
    ids = None if names is None else [view.id for view in views]
    return Changes(at, {}, views, _records(connection, since, _MOST_MISSED, ids))


def _records(connection: Connection[Any], since: datetime, limit: int, ids: Sequence[UUID] | None) -> list[NotedView]:
    parameters = {"since": since - OVERLAP, "ids": ids, "limit": limit}
    cursor = connection.cursor(row_factory=dict_row)
    return [NotedView(**row) for row in cursor.execute(_NOTED, parameters).fetchall()[::-1]]
