"""The bulk write: a chunk of classified decisions becomes rows, set by set, in the transaction that claimed it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import NamedTuple, Self
from uuid import UUID

from psycopg import Connection, Cursor

from db.cycle.claim import Claim, HistoryHead
from db.cycle.records import record_history, record_rollouts, record_steps
from db.cycle.routes import StrategyApplyResult, record_routes
from db.cycle.values import DEPLOYMENT, assigned, deployment_values
from db.locking.rows import columns
from db.outbox.written import write_events
from domain.cycle.after import deployment_after, rollout_after, turns_clock
from domain.cycle.transitions import ClassifiedDecision
from domain.model.deployment import Deployment, Rollout
from domain.outbox.cloud_events import CloudEvent, told_by_decision

_WAITING = columns("id uuid, version int8, due_at timestamptz, reason text")

_WAIT = f"""
    UPDATE deployments d SET due_at = u.due_at, reason = u.reason, phase_attempts = 0
      FROM {_WAITING} WHERE d.id = u.id AND d.version = u.version
"""

_TOLD = columns("version int8, due_at timestamptz, reason text, history_id uuid, history_key text")
"""What every change writes: the next version, the next look, and what people are told."""

_STEP = columns("id uuid, phase_attempts int4") + _TOLD

_MOVE = DEPLOYMENT + _TOLD

_TAKE_STEP = f"UPDATE deployments d SET {assigned(_STEP)} FROM {_STEP} WHERE d.id = u.id AND d.version = u.version - 1"

_MAKE_MOVE = f"UPDATE deployments d SET {assigned(_MOVE)} FROM {_MOVE} WHERE d.id = u.id AND d.version = u.version - 1"


class WaitingRow(NamedTuple):
    """A deployment that waits, as its row was read: what is written of it."""

    id: UUID
    version: int
    due_at: datetime | None
    reason: str


class StaleSnapshotError(Exception):
    """A deployment changed between the read and the write although it was locked; nothing of the chunk is kept."""


@dataclass(frozen=True)
class _Left:
    """What a decision leaves behind: its rollout, and its deployment, which is worked out where it is asked for."""

    decision: ClassifiedDecision
    rollout: Rollout | None
    at: datetime

    @classmethod
    def by(cls, decision: ClassifiedDecision, at: datetime) -> Self:
        return cls(decision, rollout_after(decision, at), at)

    @cached_property
    def deployment(self) -> Deployment:
        return deployment_after(self.decision, self.rollout, self.at)


@dataclass(frozen=True, slots=True)
class StrategyResultApplier:
    """The one write. `phase` is the handler's name, kept as the actor of each history record."""

    connection: Connection
    phase: str

    def apply(
        self, decisions: Sequence[ClassifiedDecision], claim: Claim, glanced: Sequence[WaitingRow] = ()
    ) -> StrategyApplyResult:
        """Write a chunk, and the waits that a glance told. Raises StaleSnapshotError when a version is not as read.

        Routes before deployments, and of the routes promotions before drains: each statement is judged by the budgets
        of Postgres as its deployment stands at that moment: still deploying, its new replicas in traffic.
        """
        at = claim.now
        changing: list[ClassifiedDecision] = []
        waiting: list[ClassifiedDecision] = []
        for decision in decisions:
            (changing if decision.changes_anything else waiting).append(decision)
        routes = record_routes(self.connection, changing, at)
        heads = record_history(self.connection, self.phase, changing, claim.heads, at) if changing else []
        left = [_Left.by(decision, at) for decision in changing]
        sent = [*self._change(left, heads), *self._wait([*map(_waiting, waiting), *glanced])]
        turning = [_Left.by(decision, at) for decision in waiting if turns_clock(decision)]
        record_rollouts(self.connection, ((after.decision, after.rollout) for after in (*left, *turning)), at)
        record_steps(self.connection, self.phase, changing, at)
        if claim.is_heard:
            write_events(self.connection, self._told((*left, *turning)))
        written = sum(cursor.rowcount for cursor in sent)  # asked for last, so that Postgres works while steps are made
        if written != (asked := len(decisions) + len(glanced)):
            raise StaleSnapshotError(f"{asked - written} of {asked} deployments changed while they were locked")
        return routes.result()

    def _told(self, left: Sequence[_Left]) -> list[CloudEvent]:
        """Steps that bring nothing into traffic are told to nobody: most of them."""
        telling = (
            after
            for after in left
            if not after.decision.stays or after.decision.changes.promote_route_ids or turns_clock(after.decision)
        )
        return [event for after in telling for event in told_by_decision(after.decision, self.phase, after.deployment)]

    def _wait(self, waiting: Sequence[WaitingRow]) -> Iterator[Cursor]:
        """Only the next look and the reason of a deployment that waits are written."""
        if waiting:
            yield self.connection.execute(_WAIT, _WAITING.arrays(waiting))

    def _change(self, left: Sequence[_Left], heads: Sequence[HistoryHead]) -> Iterator[Cursor]:
        """Most decisions are one step of many, for which few columns have to travel."""
        steps, moves = [], []
        for after, head in zip(left, heads, strict=True):
            decision = after.decision
            told = (decision.deployment.version + 1, decision.due_at, decision.reason, head.id, head.key)
            if decision.stays:
                steps.append((decision.deployment.id, decision.attempts, *told))
            else:
                moves.append((*deployment_values(after.deployment), *told))
        if steps:
            yield self.connection.execute(_TAKE_STEP, _STEP.arrays(steps))
        if moves:
            yield self.connection.execute(_MAKE_MOVE, _MOVE.arrays(moves))


def _waiting(decision: ClassifiedDecision) -> WaitingRow:
    deployment = decision.deployment
    return WaitingRow(deployment.id, deployment.version, decision.due_at, decision.reason)
