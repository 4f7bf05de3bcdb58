"""Deployments locked for a cycle, each with what its row and its rollout say; `db.cycle.load` brings the rest."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection

from db.cycle.rules import NO_RULES, RuleSet
from db.cycle.snapshots import (
    DEPLOYMENTS,
    ROLLOUTS,
    DeploymentRow,
    RolloutRow,
    counts_of,
    deployment_of,
    rollout_of,
)
from db.engine import database_now
from db.lifecycle import known_status
from db.locked import IN_ID_ORDER, SKIPPING_HELD
from db.rows import named_row
from domain.model import Deployment, DeploymentLifecycleStatus, Rollout, Route, RouteCounts

_CLAIM = f"""
    {DEPLOYMENTS}
     WHERE d.due_at <= statement_timestamp()
       AND (d.lifecycle, coalesce(d.sub_step, '')) IN
           (SELECT * FROM unnest(%(lifecycles)s::text[], %(sub_steps)s::text[]))
     ORDER BY d.due_at
     LIMIT %(limit)s
    {SKIPPING_HELD}
"""

_CLAIM_THESE = f"{DEPLOYMENTS} WHERE d.id = ANY(%(ids)b) {IN_ID_ORDER}"


class HistoryHead(NamedTuple):
    """The last history record of a deployment: its id, and the key under which the next one merges into it."""

    id: UUID | None
    key: str | None


class Claimed(NamedTuple):
    """A locked deployment without its routes. In a rollout there are `counts` of the routes of its new revision."""

    row: DeploymentRow
    rollout: Rollout | None
    counts: RouteCounts | None

    @property
    def status(self) -> DeploymentLifecycleStatus | None:
        """Where it is in its life; None where this release does not know that."""
        return known_status(self.row.lifecycle, self.row.sub_step)

    def deployment(self, routes: Iterable[Route] = (), rules: RuleSet = NO_RULES) -> Deployment:
        """The snapshot, with these routes and rules; without them as much as can be told from its row."""
        return deployment_of(self.row, self.rollout, routes, rules)


@dataclass(frozen=True, slots=True)
class Claim:
    """Locked deployments, and the database's time after the locks were taken."""

    deployments: tuple[Claimed, ...]
    now: datetime

    @property
    def ids(self) -> list[UUID]:
        """Of the deployments, in their order."""
        return [claimed.row.id for claimed in self.deployments]

    @property
    def heads(self) -> dict[UUID, HistoryHead]:
        """By deployment, where its timeline goes on."""
        return {
            claimed.row.id: HistoryHead(claimed.row.history_id, claimed.row.history_key) for claimed in self.deployments
        }


def claim_due(connection: Connection, targets: Iterable[DeploymentLifecycleStatus], limit: int) -> Claim:
    """Up to `limit` marked deployments of these statuses, those that another worker holds left out."""
    return _claim(connection, _CLAIM, {**as_columns(targets), "limit": limit})


def claim_these(connection: Connection, ids: Iterable[UUID]) -> Claim:
    """These deployments, waiting for whoever holds them."""
    return _claim(connection, _CLAIM_THESE, {"ids": list(ids)})


def as_columns(statuses: Iterable[DeploymentLifecycleStatus]) -> dict[str, list[str]]:
    """Statuses as their two columns store them, no sub-step as an empty one."""
    pairs = [(status.lifecycle.value, status.sub_step.value if status.sub_step else "") for status in statuses]
    return {"lifecycles": [lifecycle for lifecycle, _ in pairs], "sub_steps": [sub_step for _, sub_step in pairs]}


def _claim(connection: Connection, query: str, parameters: dict[str, Any]) -> Claim:
    cursor = connection.cursor(binary=True, row_factory=named_row(DeploymentRow))
    rows = cursor.execute(query, parameters).fetchall()
    now = database_now(connection)
    rollouts = _rollouts(connection, [row.rollout_id for row in rows if row.rollout_id])
    return Claim(
        tuple([Claimed(row, *(rollouts[row.rollout_id.int] if row.rollout_id else (None, None))) for row in rows]), now
    )


def _rollouts(connection: Connection, ids: Sequence[UUID]) -> dict[int, tuple[Rollout, RouteCounts]]:
    """By the number of their id: numbers are found faster than ids."""
    cursor = connection.cursor(binary=True, row_factory=named_row(RolloutRow))
    rows = cursor.execute(ROLLOUTS, {"ids": ids}).fetchall() if ids else ()
    return {row.id.int: (rollout_of(row), counts_of(row)) for row in rows}
