"""The reads for people: a deployment with all that one look at it shows, as frozen values. No lock is taken."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import DictRow, dict_row

from db.locking.statuses import COUNTS_UNANSWERED, IS_COUNTED_ON, known_status, lifecycle_status
from db.views.rollouts import RolloutView, rollouts_by_id, shared_fields
from db.views.routes import RouteView, present_routes
from domain.cycle.late import overdue
from domain.cycle.standing import Standing, standing
from domain.judge.unanswered import not_proven
from domain.model.deployment import MOST_STARTS, Deployment
from domain.model.picture import picture
from domain.model.states import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from domain.traffic.maintenance import known_maintenance
from domain.words.errors import DeploymentNotFoundError

_DEPLOYMENTS = """
    SELECT d.id, d.name, d.desired_replicas, d.lifecycle, d.sub_step, d.version, d.current_revision_id,
           d.deploying_revision_id, d.rollout_id,
           (SELECT name FROM revisions WHERE id = d.current_revision_id) AS current_revision,
           (SELECT name FROM revisions WHERE id = d.deploying_revision_id) AS deploying_revision,
           (SELECT jsonb_build_object('strategy', strategy, 'spec', spec, 'limits', limits)
              FROM policies WHERE deployment_id = d.id) AS policy,
           d.reason, d.degraded_reason, d.retry_at,
           CASE WHEN d.came_up_at >= d.last_failed_at THEN 0 ELSE d.failed_starts END AS failed_starts,
           d.failed_revision_id, d.due_at, coalesce(d.waits_for, '') AS waits_for, d.paused_at, d.phase_started_at,
           d.count_stopping, d.may_surge, d.created_at, d.maintenance, clock_timestamp() AS now
      FROM deployments d
"""
"""By a look at each, and no join, for which Postgres reads all revisions as soon as some hundred are asked for."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentView:
    """A deployment at the database's time `now`, with its routes that are not gone yet and its running rollout.

    `waits_for`: the command that a person must give, such as resume or promote, before it goes on; empty: none is.
    `failed_starts`: in a row, of `failed_revision_id`.
    `unproven`: a sentence while its new revision has answered nobody; empty otherwise. `maintenance`: a sentence while
    proxies answer its callers themselves; empty otherwise.
    """

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
    failed_revision_id: UUID | None
    due_at: datetime | None
    waits_for: str
    paused_at: datetime | None
    phase_started_at: datetime
    count_stopping: bool
    may_surge: bool
    created_at: datetime
    now: datetime
    rollout: RolloutView | None
    routes: tuple[RouteView, ...]
    unproven: str
    maintenance: str

    @property
    def state(self) -> str:
        """ready, deploying/provisioning, ready (degraded), ..."""
        state = str(DeploymentLifecycleStatus(self.lifecycle, self.sub_step))
        return f"{state} (degraded)" if self.degraded_reason else state

    @property
    def overdue(self) -> str:
        """A sentence when no worker looks at what is due; empty when all is well."""
        return overdue(self.lifecycle, self.due_at, self.now)

    @property
    def standing(self) -> Standing:
        """The first word to say of it, and its tone."""
        status = DeploymentLifecycleStatus(self.lifecycle, self.sub_step)
        is_paused, is_degraded = self.paused_at is not None, self.degraded_reason is not None
        runs = {self.current_revision_id, self.deploying_revision_id}
        is_failing = self.failed_starts >= MOST_STARTS and self.failed_revision_id in runs
        is_asked = bool(self.waits_for)
        return standing(status, is_paused=is_paused, is_asked=is_asked, is_degraded=is_degraded, is_failing=is_failing)

    @property
    def why(self) -> str:
        """The last look's finding; nobody has looked yet at a deployment that is pending with a revision."""
        is_new = self.lifecycle is Lifecycle.PENDING and self.current_revision
        return f"waiting for a worker to begin with {self.current_revision}" if is_new else self.reason

    @property
    def said(self) -> str:
        """The first sentence to say of it."""
        return self.overdue or self.maintenance or self.degraded_reason or self.unproven or self.why

    @property
    def picture(self) -> str:
        """The replicas as one line, such as ■■|◇."""
        return picture(self.routes, self.current_revision_id, self.deploying_revision_id)

    @property
    def snapshot(self) -> Deployment:
        """As commands see it: without what only cycles read, which is start failures, rules and metrics."""
        status = DeploymentLifecycleStatus(self.lifecycle, self.sub_step)
        rollout = self.rollout.snapshot if self.rollout else None
        return Deployment(status=status, **shared_fields(self, Deployment) | {"rollout": rollout})


def existing_deployments(connection: Connection[Any], names: Sequence[str] | None = None) -> list[DeploymentView]:
    """Deployments of these names, or all, not destroyed; by name. Left out: what only a newer release can read."""
    query, asked = (_EXISTING, ()) if names is None else (_EXISTING_OF, (list(names),))
    return _deployments(connection, _rows(connection, query, asked))


def deployment_named(connection: Connection[Any], name: str) -> DeploymentView:
    """The one of that name; when it is destroyed, the last that was. Raises DeploymentNotFoundError."""
    rows = _rows(connection, _NEWEST, {"name": name})
    if not rows:
        message = f"there is no deployment called {name}; 'rollway status' lists those that exist"
        raise DeploymentNotFoundError(message, deployment=name)
    return _only(connection, rows[0])


def deployment_by_id(connection: Connection[Any], deployment_id: UUID) -> DeploymentView:
    """One that is known to exist, destroyed or not."""
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
    for route in present_routes(connection, (row["id"] for row in rows)):
        routes[route.deployment_id].append(route)
    rollouts = rollouts_by_id(connection, [row["rollout_id"] for row in rows if row["rollout_id"]])
    unproven = {of: not_proven(*told) for of, *told in connection.execute(_UNPROVEN, ([row["id"] for row in rows],))}
    return [
        _deployment(row | {"unproven": unproven.get(row["id"], "")}, rollouts.get(row["rollout_id"]), routes[row["id"]])
        for row in rows
    ]


def _deployment(row: DictRow, rollout: RolloutView | None, routes: Sequence[RouteView]) -> DeploymentView:
    maintenance = known_maintenance(row["maintenance"])
    status = {
        "lifecycle": Lifecycle(row["lifecycle"]),
        "sub_step": DeploymentSubStep(row["sub_step"]) if row["sub_step"] else None,
        "maintenance": maintenance.said if maintenance else "",
    }
    return DeploymentView(**{**row, **status}, rollout=rollout, routes=tuple(routes))


def _rows(connection: Connection[Any], query: str, parameters: dict[str, Any] | tuple[Any, ...]) -> list[DictRow]:
    return connection.cursor(row_factory=dict_row).execute(query, parameters).fetchall()
