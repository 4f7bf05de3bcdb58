"""The reads for people: a deployment with all that one look at it shows, as frozen values. No lock is taken."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import DictRow, class_row, dict_row

from db.lifecycle import known_status, lifecycle_status
from db.views.routes import RouteView, present_routes
from domain.errors import DeploymentNotFoundError
from domain.model import Deployment, DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle, Rollout
from domain.picture import picture
from domain.strategies import stored_policy

_DEPLOYMENTS = """
    SELECT d.id, d.name, d.desired_replicas, d.lifecycle, d.sub_step, d.version, d.current_revision_id,
           d.deploying_revision_id, c.name AS current_revision, t.name AS deploying_revision, d.rollout_id,
           CASE WHEN p.strategy IS NOT NULL
                THEN jsonb_build_object('strategy', p.strategy, 'spec', p.spec, 'limits', p.limits) END AS policy,
           d.reason, d.degraded_reason, d.retry_at, d.failed_starts, d.due_at, d.paused_at, d.phase_started_at,
           d.count_stopping, d.created_at, clock_timestamp() AS now
      FROM deployments d
      LEFT JOIN revisions c ON c.id = d.current_revision_id
      LEFT JOIN revisions t ON t.id = d.deploying_revision_id
      LEFT JOIN policies p ON p.deployment_id = d.id
"""

_EXISTING = f"""
    {_DEPLOYMENTS}
     WHERE d.lifecycle <> 'destroyed' AND (%(names)s::text[] IS NULL OR d.name = ANY(%(names)s))
     ORDER BY d.name
"""

_NEWEST = f"{_DEPLOYMENTS} WHERE d.name = %s ORDER BY d.lifecycle = 'destroyed', d.created_at DESC LIMIT 1"

_BY_ID = f"{_DEPLOYMENTS} WHERE d.id = %s"

_ROLLOUTS = """
    SELECT o.id, o.from_revision_id, o.to_revision_id, f.name AS from_revision, t.name AS to_revision, o.strategy,
           o.spec, o.limits, o.desired_at_start, o.desired_with_revision, o.actor, o.reason, o.started_at,
           o.last_progress_at, o.deadline, o.clock_stopped_at, o.promote_requested, o.failed_routes, o.steps,
           o.back_reason, o.outcome, o.ended_at
      FROM rollouts o JOIN revisions f ON f.id = o.from_revision_id JOIN revisions t ON t.id = o.to_revision_id
     WHERE o.id = ANY(%s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutView:
    """A rollout, running or ended; `outcome` is None while it runs, `back_reason` says why it was turned back."""

    id: UUID
    from_revision_id: UUID
    to_revision_id: UUID
    from_revision: str
    to_revision: str
    strategy: str
    spec: dict[str, Any]
    limits: dict[str, Any]
    desired_at_start: int
    desired_with_revision: int | None
    actor: str
    reason: str
    started_at: datetime
    last_progress_at: datetime
    deadline: datetime
    clock_stopped_at: datetime | None
    promote_requested: bool
    failed_routes: int
    steps: int
    back_reason: str | None
    outcome: str | None
    ended_at: datetime | None

    @property
    def snapshot(self) -> Rollout:
        """As decisions see it."""
        policy = stored_policy({"strategy": self.strategy, "spec": self.spec, "limits": self.limits})
        return Rollout(policy=policy, **_shared_fields(self, Rollout))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    """A deployment at the database's time `now`, with its routes that are not gone yet and its running rollout."""

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
    count_stopping: bool
    created_at: datetime
    now: datetime
    rollout: RolloutView | None
    routes: tuple[RouteView, ...]

    @property
    def picture(self) -> str:
        """Its replicas as one line, such as ■■|◇."""
        return picture(self.routes, self.current_revision_id, self.deploying_revision_id)

    @property
    def snapshot(self) -> Deployment:
        """As commands see it: without what only cycles read, which is start failures, rules and metrics."""
        status = DeploymentLifecycleStatus(self.lifecycle, self.sub_step)
        rollout = self.rollout.snapshot if self.rollout else None
        return Deployment(status=status, **_shared_fields(self, Deployment) | {"rollout": rollout})


def _shared_fields(view: object, kind: type[Deployment | Rollout]) -> dict[str, Any]:
    """The fields of `kind` that the view has under the same names."""
    return {field.name: getattr(view, field.name) for field in fields(kind) if hasattr(view, field.name)}


def existing_deployments(connection: Connection[Any], names: Sequence[str] | None = None) -> list[DeploymentView]:
    """Those of these names, or all, that are not destroyed; by name. Left out: what only a newer release can read."""
    rows = _rows(connection, _EXISTING, {"names": None if names is None else list(names)})
    return _deployments(connection, [row for row in rows if known_status(row["lifecycle"], row["sub_step"])])


def deployment_named(connection: Connection[Any], name: str) -> DeploymentView:
    """The one of that name; when it is destroyed, the last that was. Raises DeploymentNotFoundError."""
    rows = _rows(connection, _NEWEST, (name,))
    if not rows:
        message = f"there is no deployment called {name}; 'rollway status' lists those that exist"
        raise DeploymentNotFoundError(message, deployment=name)
    return _only(connection, rows[0])


def deployment_by_id(connection: Connection[Any], deployment_id: UUID) -> DeploymentView:
    """One that is known to exist, destroyed or not."""
    (row,) = _rows(connection, _BY_ID, (deployment_id,))
    return _only(connection, row)


def rollouts_by_id(connection: Connection[Any], ids: Iterable[UUID]) -> dict[UUID, RolloutView]:
    """Rollouts, running or ended, by their ids."""
    cursor = connection.cursor(row_factory=class_row(RolloutView))
    return {rollout.id: rollout for rollout in cursor.execute(_ROLLOUTS, (list(ids),)).fetchall()}


def _only(connection: Connection[Any], row: DictRow) -> DeploymentView:
    """Raises UnreadableError for what only a newer release understands."""
    lifecycle_status(row["lifecycle"], row["sub_step"])
    return _deployments(connection, [row])[0]


def _deployments(connection: Connection[Any], rows: Sequence[DictRow]) -> list[DeploymentView]:
    routes: dict[UUID, list[RouteView]] = defaultdict(list)
    for route in present_routes(connection, (row["id"] for row in rows)):
        routes[route.deployment_id].append(route)
    rollouts = rollouts_by_id(connection, [row["rollout_id"] for row in rows if row["rollout_id"]])
    return [_deployment(row, rollouts.get(row["rollout_id"]), routes[row["id"]]) for row in rows]


def _deployment(row: DictRow, rollout: RolloutView | None, routes: Sequence[RouteView]) -> DeploymentView:
    status = {
        "lifecycle": Lifecycle(row["lifecycle"]),
        "sub_step": DeploymentSubStep(row["sub_step"]) if row["sub_step"] else None,
    }
    return DeploymentView(**{**row, **status}, rollout=rollout, routes=tuple(routes))


def _rows(connection: Connection[Any], query: str, parameters: dict[str, Any] | tuple[Any, ...]) -> list[DictRow]:
    return connection.cursor(row_factory=dict_row).execute(query, parameters).fetchall()
