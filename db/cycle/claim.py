"""The bulk read: marked deployments, claimed and loaded as frozen values in a constant number of statements."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.rows import TupleRow

from db.cycle.rules import NO_RULES, rules_of
from db.cycle.snapshots import DEPLOYMENTS, LIFECYCLE_STATUSES, ROLLOUTS, ROUTES, deployment_of, rollout_of, routes_of
from db.engine import database_now
from domain.model import Deployment, DeploymentLifecycleStatus, Lifecycle, Rollout
from domain.strategies.base import RouteCounts
from domain.transitions import ClassifiedDecision

Glance = Callable[[Deployment, RouteCounts, datetime], ClassifiedDecision | None]
"""Whether a deployment with something starting just waits: told from counts, before its routes are loaded."""

_WANTED = "SELECT * FROM unnest(%(lifecycles)s::text[], %(sub_steps)s::text[])"

_CLAIM = f"""
    {DEPLOYMENTS}
     WHERE d.due_at <= statement_timestamp()
       AND (d.lifecycle, coalesce(d.sub_step, '')) IN ({_WANTED})
     ORDER BY d.due_at
     LIMIT %(limit)s
       FOR NO KEY UPDATE OF d SKIP LOCKED
"""

_LOCK = f"{DEPLOYMENTS} WHERE d.id = ANY(%(ids)b) ORDER BY d.id FOR NO KEY UPDATE OF d"

# Not the pairs of _WANTED: joined to them, Postgres counts every deployment's routes before it looks at the status.
# Pairs that are mixed here, such as scaling/provisioning, are in no row: a CHECK refuses them.
_MARK_WHAT_IS_OFF = """
    UPDATE deployments SET due_at = clock_timestamp()
     WHERE id IN (
        SELECT d.id
          FROM deployments d
         WHERE d.lifecycle = ANY(%(lifecycles)s) AND coalesce(d.sub_step, '') = ANY(%(sub_steps)s)
           AND (d.due_at IS NULL OR d.due_at > clock_timestamp())
           AND (d.lifecycle <> 'ready' OR (
                (d.retry_at IS NULL OR d.retry_at <= clock_timestamp())
                AND EXISTS (
                    SELECT FROM (
                        SELECT count(*) AS live,
                               count(*) FILTER (WHERE r.revision_id = d.current_revision_id AND r.status = 'healthy'
                                                  AND r.traffic_status = 'active') AS sound
                          FROM routes r
                         WHERE r.deployment_id = d.id AND r.status NOT IN ('terminating', 'terminated', 'failed')
                    ) counted
                    WHERE counted.live <> d.desired_replicas OR counted.sound <> d.desired_replicas)))
         ORDER BY d.id
           FOR NO KEY UPDATE SKIP LOCKED)
"""


@dataclass(frozen=True, slots=True)
class HistoryHead:
    """The last history record of a deployment: its id, and the key under which the next one merges into it."""

    id: UUID | None
    key: str | None


@dataclass(frozen=True, slots=True)
class Claim:
    """Locked deployments with everything a decision needs, and the database's time after the locks were taken.

    `waits`: those that a glance was enough for; their snapshots have no routes. `heads`: of the others.
    """

    deployments: tuple[Deployment, ...]
    waits: tuple[ClassifiedDecision, ...]
    heads: dict[UUID, HistoryHead]
    now: datetime


def claim_due(
    connection: Connection,
    targets: Iterable[DeploymentLifecycleStatus],
    limit: int,
    glance: Glance = lambda *_: None,
) -> Claim:
    """Up to `limit` marked deployments of these statuses, those that another worker holds left out."""
    return _load(connection, _CLAIM, {**_statuses(targets), "limit": limit}, glance)


def lock_deployments(connection: Connection, ids: Iterable[UUID]) -> Claim:
    """These deployments, waiting for whoever holds them; locked in id order, so that no two callers deadlock."""
    return _load(connection, _LOCK, {"ids": list(ids)}, lambda *_: None)


def mark_what_is_off(connection: Connection, targets: Iterable[DeploymentLifecycleStatus]) -> int:
    """Mark deployments of these statuses; of the ready ones only those whose routes are not what they should be."""
    return connection.execute(_MARK_WHAT_IS_OFF, _statuses(targets)).rowcount


def due_statuses(connection: Connection) -> frozenset[DeploymentLifecycleStatus]:
    """The statuses of marked deployments whose time has come: one look at a partial index."""
    query = "SELECT DISTINCT lifecycle, sub_step FROM deployments WHERE due_at <= statement_timestamp()"
    rows = connection.execute(query).fetchall()
    return frozenset(lifecycle_status(lifecycle, sub_step) for lifecycle, sub_step in rows)


def lifecycle_status(lifecycle: str, sub_step: str | None) -> DeploymentLifecycleStatus:
    """A status as its two columns store it."""
    return LIFECYCLE_STATUSES[lifecycle, sub_step]


def _load(connection: Connection, query: str, parameters: dict[str, Any], glance: Glance) -> Claim:
    cursor = connection.cursor(binary=True)
    rows = cursor.execute(query, parameters).fetchall()
    now = database_now(connection)
    rollouts = _rollouts(cursor, rows)
    waits, others = [], []
    for row in rows:
        rollout, counts = rollouts[row[1].int] if row[1] else (None, None)
        waiting = glance(deployment_of(row, rollout), counts, now) if counts and counts.starting else None
        if waiting:
            waits.append(waiting)
        else:
            others.append((row, rollout))
    ids = [row[0] for row, _ in others]
    routes = routes_of(cursor.execute(ROUTES, {"ids": ids}).fetchall()) if ids else {}
    ready = [row[0] for row, _ in others if row[6] == Lifecycle.READY]
    rules = rules_of(cursor, ready) if ready else {}
    return Claim(
        deployments=tuple(
            deployment_of(row, rollout, routes.get(row[0].int, ()), rules.get(row[0], NO_RULES) if rules else NO_RULES)
            for row, rollout in others
        ),
        waits=tuple(waits),
        heads={row[0]: HistoryHead(row[2], row[3]) for row, _ in others},
        now=now,
    )


def _rollouts(cursor: Cursor[TupleRow], rows: Sequence[TupleRow]) -> dict[int, tuple[Rollout, RouteCounts]]:
    ids = [row[1] for row in rows if row[1]]
    found = cursor.execute(ROLLOUTS, {"ids": ids}).fetchall() if ids else ()
    return {row[0].int: rollout_of(row) for row in found}


def _statuses(targets: Iterable[DeploymentLifecycleStatus]) -> dict[str, Any]:
    wanted = list(targets)
    return {
        "lifecycles": [status.lifecycle.value for status in wanted],
        "sub_steps": [status.sub_step.value if status.sub_step else "" for status in wanted],
    }
