"""Reads deployments for people, with all that one look at each shows. No lock is taken."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import DictRow, dict_row, scalar_row

from db.locking.statuses import COUNTS_UNANSWERED, IS_COUNTED_ON, known_status, lifecycle_status
from db.views.deployment_view import DeploymentView, RolledBack
from db.views.rollout_views import RolloutView, rollouts_by_id
from db.views.route_views import RouteView, present_routes
from db.views.unplaced import why_without_host
from domain.model.answer_counts import not_proven
from domain.model.preparation import Preparation, PreparationState
from domain.model.states import DeploymentSubStep, Lifecycle
from domain.text.errors import DeploymentNotFoundError
from domain.traffic.maintenance import known_maintenance

_DEPLOYMENTS = """
    SELECT d.id, d.name, d.desired_replicas, d.lifecycle, d.sub_step, d.version, d.current_revision_id,
           d.deploying_revision_id, d.rollout_id,
           (SELECT name FROM revisions WHERE id = d.current_revision_id) AS current_revision,
           (SELECT name FROM revisions WHERE id = d.deploying_revision_id) AS deploying_revision,
           (SELECT jsonb_build_object('strategy', strategy, 'spec', spec, 'limits', limits)
              FROM policies WHERE deployment_id = d.id) AS policy,
           d.reason, d.degraded_reason, CASE WHEN d.retry_at > clock_timestamp() THEN d.retry_at END AS retry_at,
           CASE WHEN d.came_up_at >= d.last_failed_at THEN 0 ELSE d.failed_starts END AS failed_starts,
           d.failed_revision_id, d.due_at, coalesce(d.waits_for, '') AS waits_for, d.paused_at, d.phase_started_at,
           d.count_stopping, d.may_surge, d.created_at, d.maintenance, clock_timestamp() AS now
      FROM deployments d
"""
"""Names of revisions come from subselects: for a join Postgres reads all revisions once some hundred are asked for."""

# what has begun last, while it has answered nobody: under way, or ended and counted on
_UNPROVEN = f"""
    SELECT d.id, t.name, o.unanswered, (o.limits ->> 'unanswered')::int,
           o.ended_at + (o.limits ->> 'unanswered_within_seconds')::float8 * interval '1 s' - clock_timestamp()
      FROM deployments d
      JOIN rollouts o ON o.id = coalesce(d.rollout_id, (
           SELECT id FROM rollouts WHERE to_revision_id = d.current_revision_id ORDER BY started_at DESC LIMIT 1))
      JOIN revisions t ON t.id = o.to_revision_id
     WHERE d.id = ANY(%s) AND o.back_reason IS NULL AND {COUNTS_UNANSWERED}
       AND (o.unanswered > 0 OR (o.unanswered = 0 AND o.in_use AND o.ended_at IS NOT NULL))
       AND (o.id = d.rollout_id OR {IS_COUNTED_ON})
"""

# the last rollout, where it went back within the hour
_ROLLED_BACK = """
    SELECT d.id, t.name, o.ended_at, coalesce(o.back_reason, '')
      FROM deployments d
      JOIN rollouts o ON o.id = (SELECT id FROM rollouts WHERE deployment_id = d.id ORDER BY started_at DESC LIMIT 1)
      JOIN revisions t ON t.id = o.to_revision_id
     WHERE d.id = ANY(%s) AND d.lifecycle NOT IN ('destroying', 'destroyed')
       AND o.outcome = 'rolled_back' AND o.ended_at > clock_timestamp() - interval '1 hour'
"""

_PREPARATIONS = """
    SELECT d.id, p.host, p.state, p.words,
           extract(epoch FROM coalesce(p.ended_at, clock_timestamp()) - p.started_at)::float8
      FROM deployments d
      JOIN preparations p ON p.revision_id = coalesce(d.deploying_revision_id, d.current_revision_id)
     WHERE d.id = ANY(%s) ORDER BY d.id, p.host
"""

# two statements: one that may leave its names out reads all deployments for those of a few
_EXISTING = f"{_DEPLOYMENTS} WHERE d.lifecycle <> 'destroyed' ORDER BY d.name"
_EXISTING_OF = f"{_DEPLOYMENTS} WHERE d.lifecycle <> 'destroyed' AND d.name = ANY(%s) ORDER BY d.name"

_NEWEST = f"""
    {_DEPLOYMENTS}
     WHERE d.id = coalesce(
           (SELECT id FROM deployments WHERE name = %(name)s AND lifecycle <> 'destroyed'),
           (SELECT id FROM deployments WHERE name = %(name)s AND lifecycle = 'destroyed'
             ORDER BY created_at DESC LIMIT 1))
"""

_BY_ID = f"{_DEPLOYMENTS} WHERE d.id = ANY(%s) ORDER BY d.name, d.id"


def existing_deployments(connection: Connection[Any], names: Sequence[str] | None = None) -> list[DeploymentView]:
    """Deployments of these names, or all, not destroyed; by name. Left out: what only a newer release can read."""
    query, parameters = (_EXISTING, ()) if names is None else (_EXISTING_OF, (list(names),))
    return _deployments(connection, _rows(connection, query, parameters))


def existing_names(connection: Connection[Any], limit: int) -> list[str]:
    """The names of deployments that are not destroyed, `limit` at most."""
    query = "SELECT name FROM deployments WHERE lifecycle <> 'destroyed' ORDER BY name LIMIT %s"
    return connection.cursor(row_factory=scalar_row).execute(query, (limit,)).fetchall()


def deployment_named(connection: Connection[Any], name: str) -> DeploymentView:
    """The one of that name; when it is destroyed, the last that was. Raises DeploymentNotFoundError."""
    rows = _rows(connection, _NEWEST, {"name": name})
    if not rows:
        message = f"there is no deployment called {name}; 'rollway status' lists those that exist"
        raise DeploymentNotFoundError(message, deployment=name)
    return _only(connection, rows[0])


def deployment_by_id(connection: Connection[Any], deployment_id: UUID) -> DeploymentView:
    """The view of a deployment that exists, destroyed or not."""
    return _only(connection, _rows(connection, _BY_ID, ([deployment_id],))[0])


def deployments_by_id(connection: Connection[Any], ids: Iterable[UUID]) -> list[DeploymentView]:
    """Deployments of these ids, destroyed or not. Left out: what only a newer release can read."""
    return _deployments(connection, _rows(connection, _BY_ID, (list(ids),)))


def _only(connection: Connection[Any], row: DictRow) -> DeploymentView:
    """Raises UnreadableError for what only a newer release understands."""
    lifecycle_status(row["lifecycle"], row["sub_step"])
    return _deployments(connection, [row])[0]


def _deployments(connection: Connection[Any], rows: Sequence[DictRow]) -> list[DeploymentView]:
    rows = [row for row in rows if known_status(row["lifecycle"], row["sub_step"])]
    routes: dict[UUID, list[RouteView]] = defaultdict(list)
    present = present_routes(connection, (row["id"] for row in rows))
    whys = why_without_host(connection, present)
    for route in present:
        routes[route.deployment_id].append(replace(route, reason=whys[route.id]) if route.id in whys else route)
    rollouts = rollouts_by_id(connection, [row["rollout_id"] for row in rows if row["rollout_id"]])
    unproven = {
        of: not_proven(*counts) for of, *counts in connection.execute(_UNPROVEN, ([row["id"] for row in rows],))
    }
    rolled_back = {
        of: RolledBack(*end) for of, *end in connection.execute(_ROLLED_BACK, ([row["id"] for row in rows],))
    }
    preparations: dict[UUID, list[Preparation]] = defaultdict(list)
    for of, host, state, *rest in connection.execute(_PREPARATIONS, ([row["id"] for row in rows],)):
        preparations[of].append(Preparation(host, PreparationState(state), *rest))
    return [
        _deployment(
            row | {"unproven": unproven.get(row["id"], ""), "rolled_back": rolled_back.get(row["id"])},
            rollouts.get(row["rollout_id"]),
            routes[row["id"]],
            preparations[row["id"]],
        )
        for row in rows
    ]


def _deployment(
    row: DictRow, rollout: RolloutView | None, routes: Sequence[RouteView], preparations: Sequence[Preparation]
) -> DeploymentView:
    maintenance = known_maintenance(row["maintenance"])
    status = {
        "lifecycle": Lifecycle(row["lifecycle"]),
        "sub_step": DeploymentSubStep(row["sub_step"]) if row["sub_step"] else None,
        "maintenance": maintenance.sentence if maintenance else "",
    }
    parts = {"rollout": rollout, "routes": tuple(routes), "preparations": tuple(preparations)}
    return DeploymentView(**{**row, **status, **parts})


def _rows(connection: Connection[Any], query: str, parameters: dict[str, Any] | tuple[Any, ...]) -> list[DictRow]:
    return connection.cursor(row_factory=dict_row).execute(query, parameters).fetchall()
