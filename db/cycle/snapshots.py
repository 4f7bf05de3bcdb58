"""Rows straight into the frozen values that decisions are made from, and names for the log."""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import fields, replace
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from db.locking.statuses import ACTIVE, canary_state, lifecycle_status, start_failures
from domain.autoscaling.rule import NO_AUTOSCALING, AutoscalingState
from domain.model.deployment import Deployment, Rollout, Route
from domain.model.policy import DeploymentPolicy
from domain.strategies.builtin import stored_policy


class DeploymentRow(NamedTuple):
    """A row of `deployments`, as a cycle reads it; `failed_revision_id` and what follows: starts that failed."""

    id: UUID
    rollout_id: UUID | None
    history_id: UUID | None
    history_key: str | None
    name: str
    desired_replicas: int
    lifecycle: str
    sub_step: str | None
    current_revision_id: UUID | None
    deploying_revision_id: UUID | None
    version: int
    phase_started_at: datetime
    phase_attempts: int
    paused_at: datetime | None
    degraded_reason: str | None
    retry_at: datetime | None
    last_autoscaled_at: datetime | None
    failed_revision_id: UUID | None
    failed_starts: int
    last_failed_at: datetime | None
    came_up_at: datetime | None
    short_lives: int
    count_stopping: bool
    may_surge: bool
    due_at: datetime | None
    waits_for: str | None
    has_seats: bool
    has_needs: bool


DEPLOYMENTS = f"SELECT {', '.join(f'd.{column}' for column in DeploymentRow._fields)} FROM deployments d"


class RolloutRow(NamedTuple):
    """A row of `rollouts`, its settings as JSON text, with the active routes of its new revision counted.

    `may_be_held`: there are freezes or groups at all.
    """

    id: UUID
    from_revision_id: UUID
    to_revision_id: UUID
    strategy: str
    spec: str
    limits: str
    started_at: datetime
    last_progress_at: datetime
    deadline: datetime
    desired_at_start: int
    desired_with_revision: int | None
    failed_routes: int
    steps: int
    clock_stopped_at: datetime | None
    promote_requested: bool
    is_undo: bool
    through_freeze: bool
    last_failure: str | None
    in_use: bool
    unanswered: int | None
    stage: int
    weight: int | None
    weight_known_at: datetime | None
    may_be_held: bool
    starting: int
    healthy: int
    idle: int


_JSON = ("spec", "limits")
_COMPUTED = ("may_be_held", "starting", "healthy", "idle")
_STORED = (f"o.{name}::text" if name in _JSON else f"o.{name}" for name in RolloutRow._fields if name not in _COMPUTED)
ROLLOUTS = f"""
    SELECT {", ".join(_STORED)},
           EXISTS (SELECT FROM freezes) OR EXISTS (SELECT FROM deployment_groups) AS may_be_held, counted.*
      FROM rollouts o,
           LATERAL (SELECT count(*) FILTER (WHERE r.status = 'provisioning') AS starting,
                           count(*) FILTER (WHERE r.status = 'healthy') AS healthy,
                           count(*) FILTER (WHERE r.traffic_status = 'inactive') AS idle
                      FROM routes r
                     WHERE r.deployment_id = o.deployment_id AND r.revision_id = o.to_revision_id
                       AND r.{ACTIVE}) counted
     WHERE o.id = ANY(%(ids)b)
"""
_FIELDS = [field.name for field in fields(Rollout)]
_BEFORE_POLICY = _FIELDS.index("policy")
_in_order: Callable[[RolloutRow], tuple[Any, ...]] = attrgetter(
    *(name for name in _FIELDS if name in RolloutRow._fields)
)


def deployment_of(
    row: DeploymentRow,
    rollout: Rollout | None = None,
    routes: Iterable[Route] = (),
    autoscaling: AutoscalingState = NO_AUTOSCALING,
) -> Deployment:
    """The snapshot of a deployment."""
    return Deployment(
        id=row.id,
        name=row.name,
        desired_replicas=row.desired_replicas,
        status=lifecycle_status(row.lifecycle, row.sub_step),
        current_revision_id=row.current_revision_id,
        deploying_revision_id=row.deploying_revision_id,
        version=row.version,
        phase_started_at=row.phase_started_at,
        phase_attempts=row.phase_attempts,
        paused_at=row.paused_at,
        rollout=rollout,
        start_failures=start_failures(
            row.failed_revision_id, row.failed_starts, row.last_failed_at, row.came_up_at, row.short_lives
        ),
        degraded_reason=row.degraded_reason,
        retry_at=row.retry_at,
        routes=tuple(routes),
        autoscaling=replace(autoscaling, last_at=row.last_autoscaled_at) if row.last_autoscaled_at else autoscaling,
        count_stopping=row.count_stopping,
        may_surge=row.may_surge,
    )


def rollout_of(row: RolloutRow) -> Rollout:
    """The rollout, with its own copy of the policy."""
    columns, canary = _in_order(row), canary_state(row.stage, row.weight, row.weight_known_at)
    # in the order of the fields, of which `canary` is the last one: by name it takes longer
    values: tuple[Any, ...] = (*columns[:_BEFORE_POLICY], policy_of(row), *columns[_BEFORE_POLICY:], canary)
    return Rollout(*values)


def policy_of(row: RolloutRow) -> DeploymentPolicy:
    """The rollout's own copy."""
    return _policy(row.strategy, row.spec, row.limits)


@lru_cache(maxsize=1024)
def _policy(strategy: str, spec: str, limits: str) -> DeploymentPolicy:
    """Most rollouts of a fleet share a few policies; parsing each of them again would cost more than the decision."""
    return stored_policy({"strategy": strategy, "spec": json.loads(spec), "limits": json.loads(limits)})


def revision_names(connection: Connection, ids: Collection[UUID]) -> dict[UUID, str]:
    return dict(connection.execute("SELECT id, name FROM revisions WHERE id = ANY(%s)", (list(ids),)).fetchall())


def traceparents(connection: Connection, rollout_ids: Collection[UUID]) -> dict[UUID, str]:
    """The trace that asked for each of these rollouts, where one is known."""
    query = "SELECT id, traceparent FROM rollouts WHERE id = ANY(%s) AND traceparent IS NOT NULL"
    return dict(connection.execute(query, (list(rollout_ids),)).fetchall())
