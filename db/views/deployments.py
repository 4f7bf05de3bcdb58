"""The reads for people: a deployment with all that one look at it shows, as frozen values. No lock is taken."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import DictRow, class_row, dict_row

from db.schema.statuses import PRESENT
from domain.errors import DeploymentNotFoundError
from domain.model import (
    Deployment,
    DeploymentLifecycleStatus,
    DeploymentSubStep,
    Lifecycle,
    Route,
    RouteStatus,
    TrafficStatus,
)

_DEPLOYMENTS = """
    SELECT d.id, d.name, d.desired_replicas, d.lifecycle, d.sub_step, d.version, d.current_revision_id,
           d.deploying_revision_id, c.name AS current_revision, t.name AS deploying_revision, d.rollout_id,
           CASE WHEN p.strategy IS NOT NULL
                THEN jsonb_build_object('strategy', p.strategy, 'spec', p.spec, 'limits', p.limits) END AS policy,
           d.reason, d.degraded_reason, d.retry_at, d.failed_starts, d.due_at, d.paused_at, d.phase_started_at,
           d.created_at, clock_timestamp() AS now
      FROM deployments d
      LEFT JOIN revisions c ON c.id = d.current_revision_id
      LEFT JOIN revisions t ON t.id = d.deploying_revision_id
      LEFT JOIN policies p ON p.deployment_id = d.id
"""

_LIVE = f"""
    {_DEPLOYMENTS}
     WHERE d.lifecycle <> 'destroyed' AND (%(names)s::text[] IS NULL OR d.name = ANY(%(names)s))
     ORDER BY d.name
"""

_NEWEST = f"{_DEPLOYMENTS} WHERE d.name = %s ORDER BY d.lifecycle = 'destroyed', d.created_at DESC LIMIT 1"

_BY_ID = f"{_DEPLOYMENTS} WHERE d.id = %s"

_ROUTES = """
    SELECT r.id, r.deployment_id AS deployment_id, v.name AS revision, r.revision_id, r.status,
           r.traffic_status AS traffic, r.address, r.status_reason AS reason, r.log_tail, r.created_at,
           r.status_changed_at, r.stopped_at, r.parked_until
      FROM routes r JOIN revisions v ON v.id = r.revision_id
"""

_LIVE_ROUTES = f"{_ROUTES} WHERE r.deployment_id = ANY(%s) AND r.{PRESENT} ORDER BY r.id"

_ALL_ROUTES = f"{_ROUTES} WHERE r.deployment_id = %s ORDER BY r.id DESC LIMIT %s"

_LAST_FAILED = f"{_ROUTES} WHERE r.deployment_id = %s AND r.status = 'failed' ORDER BY r.status_changed_at DESC LIMIT 1"

_ABBREVIATED = f"""
    {_ROUTES}
     WHERE replace(r.id::text, '-', '') LIKE ANY(ARRAY[%(id)s || '%%', '%%' || %(id)s])
     ORDER BY r.id DESC
     LIMIT 10
"""

_ROLLOUTS = """
    SELECT o.id, f.name AS from_revision, t.name AS to_revision, o.strategy, o.spec, o.limits, o.actor, o.reason,
           o.started_at, o.deadline, o.clock_stopped_at, o.failed_routes, o.steps, o.back_reason, o.outcome, o.ended_at
      FROM rollouts o JOIN revisions f ON f.id = o.from_revision_id JOIN revisions t ON t.id = o.to_revision_id
     WHERE o.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteView:
    """A replica and its place in traffic. `reason` says why it got its status; `log_tail` comes with a failure."""

    id: UUID
    deployment_id: UUID
    revision: str
    revision_id: UUID
    status: RouteStatus
    traffic: TrafficStatus
    address: str | None
    reason: str
    log_tail: str | None
    created_at: datetime
    status_changed_at: datetime
    stopped_at: datetime | None
    parked_until: datetime | None

    @property
    def snapshot(self) -> Route:
        """As decisions and pictures see it."""
        return Route(
            id=self.id,
            revision_id=self.revision_id,
            status=self.status,
            traffic=self.traffic,
            created_at=self.created_at,
            status_changed_at=self.status_changed_at,
            parked_until=self.parked_until,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutView:
    """A rollout, running or ended; `outcome` is None while it runs, `back_reason` says why it was turned back."""

    id: UUID
    from_revision: str
    to_revision: str
    strategy: str
    spec: dict[str, Any]
    limits: dict[str, Any]
    actor: str
    reason: str
    started_at: datetime
    deadline: datetime
    clock_stopped_at: datetime | None
    failed_routes: int
    steps: int
    back_reason: str | None
    outcome: str | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    """A deployment at the database's time `now`, with its live routes and its running rollout."""

    id: UUID
    name: str
    desired_replicas: int
    lifecycle: Lifecycle
    sub_step: DeploymentSubStep | None
    version: int
    current_revision_id: UUID | None
    deploying_revision_id: UUID | None
    current_revision: str | None
    deploying_revision: str | None
    rollout_id: UUID | None
    policy: dict[str, Any] | None
    reason: str
    degraded_reason: str | None
    retry_at: datetime | None
    failed_starts: int
    due_at: datetime | None
    paused_at: datetime | None
    phase_started_at: datetime
    created_at: datetime
    now: datetime
    rollout: RolloutView | None
    routes: tuple[RouteView, ...]

    @property
    def snapshot(self) -> Deployment:
        """What `decide_activation` and `picture` need of it; without the rollout."""
        return Deployment(
            id=self.id,
            name=self.name,
            desired_replicas=self.desired_replicas,
            status=DeploymentLifecycleStatus(self.lifecycle, self.sub_step),
            current_revision_id=self.current_revision_id,
            deploying_revision_id=self.deploying_revision_id,
            version=self.version,
            phase_started_at=self.phase_started_at,
            routes=tuple(route.snapshot for route in self.routes),
        )


def live_deployments(connection: Connection[Any], names: Sequence[str] | None = None) -> list[DeploymentView]:
    """Those of these names, or all, that are not destroyed; by name."""
    return _deployments(connection, _rows(connection, _LIVE, {"names": None if names is None else list(names)}))


def deployment_named(connection: Connection[Any], name: str) -> DeploymentView:
    """The one of that name; when it is destroyed, the last that was. Raises DeploymentNotFoundError."""
    found = _deployments(connection, _rows(connection, _NEWEST, (name,)))
    if not found:
        message = f"there is no deployment called {name}; 'rollway status' lists those that exist"
        raise DeploymentNotFoundError(message, deployment=name)
    return found[0]


def deployment_by_id(connection: Connection[Any], deployment_id: UUID) -> DeploymentView:
    """One that is known to exist, destroyed or not."""
    (found,) = _deployments(connection, _rows(connection, _BY_ID, (deployment_id,)))
    return found


def rollouts_by_id(connection: Connection[Any], ids: Iterable[UUID]) -> dict[UUID, RolloutView]:
    """Rollouts, running or ended, by their ids."""
    cursor = connection.cursor(row_factory=class_row(RolloutView))
    return {rollout.id: rollout for rollout in cursor.execute(_ROLLOUTS, (list(ids),)).fetchall()}


def all_routes(connection: Connection[Any], deployment_id: UUID, limit: int) -> list[RouteView]:
    """The newest routes of a deployment, those that are gone too; oldest first."""
    return [_route(row) for row in reversed(_rows(connection, _ALL_ROUTES, (deployment_id, limit)))]


def last_failed_route(connection: Connection[Any], deployment_id: UUID) -> RouteView | None:
    """The replica that failed last, with the last lines of its log."""
    return next((_route(row) for row in _rows(connection, _LAST_FAILED, (deployment_id,))), None)


def routes_abbreviated(connection: Connection[Any], digits: str) -> list[RouteView]:
    """Routes whose id, without hyphens, begins or ends with these hexadecimal digits; 10 at most."""
    return [_route(row) for row in _rows(connection, _ABBREVIATED, {"id": digits})]


def _deployments(connection: Connection[Any], rows: Sequence[DictRow]) -> list[DeploymentView]:
    routes: dict[UUID, list[RouteView]] = defaultdict(list)
    for row in _rows(connection, _LIVE_ROUTES, ([row["id"] for row in rows],)):
        routes[row["deployment_id"]].append(_route(row))
    rollouts = rollouts_by_id(connection, [row["rollout_id"] for row in rows if row["rollout_id"]])
    return [_deployment(row, rollouts.get(row["rollout_id"]), routes[row["id"]]) for row in rows]


def _deployment(row: DictRow, rollout: RolloutView | None, routes: Sequence[RouteView]) -> DeploymentView:
    status = {
        "lifecycle": Lifecycle(row["lifecycle"]),
        "sub_step": DeploymentSubStep(row["sub_step"]) if row["sub_step"] else None,
    }
    return DeploymentView(**{**row, **status}, rollout=rollout, routes=tuple(routes))


def _route(row: DictRow) -> RouteView:
    return RouteView(**{**row, "status": RouteStatus(row["status"]), "traffic": TrafficStatus(row["traffic"])})


def _rows(connection: Connection[Any], query: str, parameters: dict[str, Any] | tuple[Any, ...]) -> list[DictRow]:
    return connection.cursor(row_factory=dict_row).execute(query, parameters).fetchall()
