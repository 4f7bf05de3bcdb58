"""The bulk read: marked deployments, claimed and loaded as frozen values in a constant number of statements."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from psycopg.rows import TupleRow
from sqlalchemy import Connection

from db.engine import driver
from db.rules import NO_RULES, Ruled, rules_of
from domain.model import (
    Deployment,
    DeploymentLifecycleStatus,
    DeploymentSubStep,
    Lifecycle,
    Rollout,
    Route,
    RouteStatus,
    StartFailures,
    TrafficStatus,
)
from domain.policy import DeploymentPolicy
from domain.strategies import stored_policy

_DEPLOYMENT = """
    SELECT e.id, e.name, e.desired_replicas, e.lifecycle, e.sub_step, e.current_revision_id, e.deploying_revision_id,
           e.version, e.phase_started_at, e.phase_attempts, e.paused_at, e.failed_revision_id, e.failed_starts,
           e.last_failed_at, e.degraded_reason, e.retry_at, e.rollout_id, e.history_id, e.history_key,
           e.last_autoscaled_at
      FROM endpoints e
"""

_WANTED = "SELECT * FROM unnest(%(lifecycles)s::text[], %(sub_steps)s::text[])"

_CLAIM = f"""
    {_DEPLOYMENT}
     WHERE e.due_at <= statement_timestamp()
       AND (e.lifecycle, coalesce(e.sub_step, '')) IN ({_WANTED})
     ORDER BY e.due_at
     LIMIT %(limit)s
       FOR NO KEY UPDATE OF e SKIP LOCKED
"""

_LOCK = f"{_DEPLOYMENT} WHERE e.id = ANY(%(ids)s) ORDER BY e.id FOR NO KEY UPDATE OF e"

_ROUTES = """
    SELECT endpoint_id, id, revision_id, status, traffic_status, created_at, status_changed_at, parked_until
      FROM routes
     WHERE endpoint_id = ANY(%(ids)s) AND status NOT IN ('terminated', 'failed')
     ORDER BY id
"""

_ROLLOUTS = """
    SELECT id, from_revision_id, to_revision_id, strategy, spec::text, limits::text, started_at, last_progress_at,
           deadline, failed_routes, steps, clock_stopped_at, promote_requested,
           desired_at_start
      FROM rollouts
     WHERE id = ANY(%(ids)s)
"""

_MARK_WHAT_IS_OFF = f"""
    UPDATE endpoints SET due_at = clock_timestamp()
     WHERE id IN (
        SELECT e.id
          FROM endpoints e
         WHERE (e.lifecycle, coalesce(e.sub_step, '')) IN ({_WANTED})
           AND (e.due_at IS NULL OR e.due_at > clock_timestamp())
           AND (e.lifecycle <> 'ready' OR (
                (e.retry_at IS NULL OR e.retry_at <= clock_timestamp())
                AND EXISTS (
                    SELECT FROM (
                        SELECT count(*) AS live,
                               count(*) FILTER (WHERE r.revision_id = e.current_revision_id AND r.status = 'healthy'
                                                  AND r.traffic_status = 'active') AS sound
                          FROM routes r
                         WHERE r.endpoint_id = e.id AND r.status NOT IN ('terminating', 'terminated', 'failed')
                    ) counted
                    WHERE counted.live <> e.desired_replicas OR counted.sound <> e.desired_replicas)))
         ORDER BY e.id
           FOR NO KEY UPDATE SKIP LOCKED)
"""  # noqa: S608  (composed of constants)


@dataclass(frozen=True, slots=True)
class HistoryHead:
    """The last history record of a deployment: its id, and the key under which the next one merges into it."""

    id: UUID | None
    key: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """Locked deployments with everything a decision needs, and the database's time after the locks were taken."""

    deployments: tuple[Deployment, ...]
    heads: dict[UUID, HistoryHead]
    now: datetime


def claim_due(connection: Connection, targets: Iterable[DeploymentLifecycleStatus], limit: int) -> Claim:
    """Up to `limit` marked deployments of these statuses, those that another worker holds left out."""
    return _load(connection, _CLAIM, {**_statuses(targets), "limit": limit})


def lock_deployments(connection: Connection, ids: Iterable[UUID]) -> Claim:
    """These deployments, waiting for whoever holds them; locked in id order, so that no two callers deadlock."""
    return _load(connection, _LOCK, {"ids": list(ids)})


def mark_what_is_off(connection: Connection, targets: Iterable[DeploymentLifecycleStatus]) -> int:
    """Mark deployments of these statuses; of the ready ones only those whose routes are not what they should be."""
    return driver(connection).execute(_MARK_WHAT_IS_OFF, _statuses(targets)).rowcount


def due_statuses(connection: Connection) -> frozenset[DeploymentLifecycleStatus]:
    """The statuses of marked deployments whose time has come: one look at a partial index."""
    query = "SELECT DISTINCT lifecycle, sub_step FROM endpoints WHERE due_at <= statement_timestamp()"
    rows = driver(connection).execute(query).fetchall()
    return frozenset(lifecycle_status(lifecycle, sub_step) for lifecycle, sub_step in rows)


def database_now(connection: Connection) -> datetime:
    """The only clock that decides anything."""
    row = driver(connection).execute("SELECT clock_timestamp()").fetchone()
    assert row is not None  # noqa: S101  (a SELECT without FROM has one row)
    now: datetime = row[0]
    return now


def lifecycle_status(lifecycle: str, sub_step: str | None) -> DeploymentLifecycleStatus:
    """A status as its two columns store it."""
    return DeploymentLifecycleStatus(Lifecycle(lifecycle), DeploymentSubStep(sub_step) if sub_step else None)


def _load(connection: Connection, query: str, parameters: dict[str, Any]) -> Claim:
    cursor = driver(connection).cursor(binary=True)
    rows = cursor.execute(query, parameters).fetchall()
    if not rows:
        return Claim((), {}, database_now(connection))
    routes = _routes(cursor.execute(_ROUTES, {"ids": [row[0] for row in rows]}).fetchall())
    open_rollouts = [row[16] for row in rows if row[16]]
    rollouts = _rollouts(cursor.execute(_ROLLOUTS, {"ids": open_rollouts}).fetchall()) if open_rollouts else {}
    ready = [row[0] for row in rows if row[3] == Lifecycle.READY]
    rules = rules_of(cursor, ready) if ready else {}
    return Claim(
        deployments=tuple(_deployment(row, routes, rollouts, rules.get(row[0], NO_RULES)) for row in rows),
        heads={row[0]: HistoryHead(row[17], row[18]) for row in rows},
        now=database_now(connection),
    )


def _statuses(targets: Iterable[DeploymentLifecycleStatus]) -> dict[str, Any]:
    wanted = list(targets)
    return {
        "lifecycles": [status.lifecycle.value for status in wanted],
        "sub_steps": [status.sub_step.value if status.sub_step else "" for status in wanted],
    }


def _deployment(
    row: TupleRow, routes: dict[UUID, list[Route]], rollouts: dict[UUID, Rollout], ruled: Ruled
) -> Deployment:
    failing, failed_starts, last_failed_at = row[11:14]
    return Deployment(
        id=row[0],
        name=row[1],
        desired_replicas=row[2],
        status=lifecycle_status(row[3], row[4]),
        current_revision_id=row[5],
        deploying_revision_id=row[6],
        version=row[7],
        phase_started_at=row[8],
        phase_attempts=row[9],
        paused_at=row[10],
        rollout=rollouts[row[16]] if row[16] else None,
        start_failures=StartFailures(failing, failed_starts, last_failed_at) if failed_starts else None,
        degraded_reason=row[14],
        retry_at=row[15],
        routes=tuple(routes.get(row[0], ())),
        rules=ruled.rules,
        metrics=ruled.metrics,
        last_autoscaled_at=row[19],
    )


def _routes(rows: Sequence[TupleRow]) -> dict[UUID, list[Route]]:
    routes: dict[UUID, list[Route]] = defaultdict(list)
    for endpoint_id, route_id, revision_id, status, traffic, created_at, changed_at, parked_until in rows:
        routes[endpoint_id].append(
            Route(
                route_id, revision_id, RouteStatus(status), TrafficStatus(traffic), created_at, changed_at, parked_until
            )
        )
    return routes


def _rollouts(rows: Sequence[TupleRow]) -> dict[UUID, Rollout]:
    return {
        row[0]: Rollout(
            id=row[0],
            from_revision_id=row[1],
            to_revision_id=row[2],
            policy=_policy(row[3], row[4], row[5]),
            started_at=row[6],
            last_progress_at=row[7],
            deadline=row[8],
            failed_routes=row[9],
            steps=row[10],
            clock_stopped_at=row[11],
            promote_requested=row[12],
            desired_at_start=row[13],
        )
        for row in rows
    }


@lru_cache(maxsize=1024)
def _policy(strategy: str, spec: str, limits: str) -> DeploymentPolicy:
    """Most rollouts of a fleet share a few policies; parsing each anew would cost more than the decision."""
    return stored_policy({"strategy": strategy, "spec": json.loads(spec), "limits": json.loads(limits)})
