"""The applier writes the next snapshots of a chunk into rows, in bulk, in the transaction of the claim."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection, Cursor

from db.cycle.claim import Claim, HistoryHead
from db.cycle.records import DEPLOYMENT, assigned, deployment_values, record_history, record_rollouts
from db.cycle.routes import RecordedRoutes, StrategyApplyResult, record_routes
from db.cycle.seats import give_seats
from db.cycle.steps import record_steps
from db.locking.rows import columns
from db.outbox.delivery import write_events
from domain.cycle.writes import Foretold, NewRoute, StepRecord
from domain.model.decision import RouteChanges
from domain.outbox.cloud_events import CloudEvent

_WAITING = columns("id uuid, version int8, due_at timestamptz, reason text, waits_for text")

_WAIT = f"""
    UPDATE deployments d SET due_at = u.due_at, reason = u.reason, waits_for = u.waits_for, phase_attempts = 0
      FROM {_WAITING} WHERE d.id = u.id AND d.version = u.version
"""

_TOLD = columns("version int8, due_at timestamptz, reason text, waits_for text, history_id uuid, history_key text")
"""What every change writes: the next version, the next look, and what people are told."""

_STEP = columns("id uuid, phase_attempts int4") + _TOLD

_MOVE = DEPLOYMENT + _TOLD

_TAKE_STEP = f"UPDATE deployments d SET {assigned(_STEP)} FROM {_STEP} WHERE d.id = u.id AND d.version = u.version - 1"

_MAKE_MOVE = f"UPDATE deployments d SET {assigned(_MOVE)} FROM {_MOVE} WHERE d.id = u.id AND d.version = u.version - 1"


class WaitingRow(NamedTuple):
    """A deployment that waits, as its row was read: what is written of it. `waits_for`: what a person must type."""

    id: UUID
    version: int
    due_at: datetime | None
    reason: str
    waits_for: str | None


class StaleSnapshotError(Exception):
    """A deployment changed between the read and the write although it was locked; nothing of the chunk is kept."""


@dataclass(slots=True)
class StrategyResultApplier:
    """The one write of a chunk. `phase` is the handler's name, kept as the actor of each history record.

    Call its methods in their order. Each only sends its statements, so that Postgres writes while Python goes on.

    It writes routes before deployments, and promotions before drains, since triggers check the budget each time:
    the deployment must still be deploying, and its new replicas in traffic, when old ones are drained.
    """

    connection: Connection
    phase: str
    claim: Claim
    _routes: RecordedRoutes | None = None
    _sent: list[Cursor] = field(default_factory=list)
    _asked: int = 0

    def move_routes(self, changes: Sequence[RouteChanges], placed: Sequence[tuple[NewRoute, str | None]]) -> None:
        """Write routes. `placed`: the new ones, with their hosts."""
        self._routes = record_routes(self.connection, changes, placed, self.claim.now)

    def apply(self, left: Sequence[Foretold], glanced: Sequence[WaitingRow] = ()) -> None:
        """Write history, deployments, rollouts and seats, and the waits that a glance found."""
        changing = [each for each in left if each.key]
        waiting = [*(_waiting(each) for each in left if not each.key), *glanced]
        at, heads = self.claim.now, self.claim.heads
        last = record_history(self.connection, self.phase, changing, heads, at) if changing else []
        self._sent += [*self._change(changing, last), *self._wait(waiting)]
        self._asked += len(changing) + len(waiting)
        record_rollouts(self.connection, left, at)
        give_seats(self.connection, self.claim.seated if changing else ())

    def record(self, steps: Sequence[StepRecord], told: Sequence[CloudEvent]) -> None:
        """Keep the steps of rollouts, and the events that subscribers are told."""
        record_steps(self.connection, self.phase, steps, self.claim.now)
        write_events(self.connection, told)

    def result(self) -> StrategyApplyResult:
        """Wait for Postgres. Raises StaleSnapshotError when a version is not as it was read."""
        written = sum(cursor.rowcount for cursor in self._sent)
        if written != self._asked:
            missing = self._asked - written
            raise StaleSnapshotError(f"{missing} of {self._asked} deployments changed while they were locked")
        return self._routes.result() if self._routes else StrategyApplyResult()

    def _wait(self, waiting: Sequence[WaitingRow]) -> Iterator[Cursor]:
        """Write the next look and the reason of each deployment that waits, and nothing else."""
        if waiting:
            yield self.connection.execute(_WAIT, _WAITING.arrays(waiting))

    def _change(self, changing: Sequence[Foretold], heads: Sequence[HistoryHead]) -> Iterator[Cursor]:
        """Write few columns for a decision that only moves routes, as most do, and all columns for the others."""
        steps, moves = [], []
        for each, head in zip(changing, heads, strict=True):
            decision = each.decision
            said = (decision.due_at, decision.reason, each.waits_for)
            told = (decision.deployment.version + 1, *said, head.id, head.key)
            if each.deployment is None:
                steps.append((decision.deployment.id, decision.attempts, *told))
            else:
                moves.append((*deployment_values(each.deployment), *told))
        if steps:
            yield self.connection.execute(_TAKE_STEP, _STEP.arrays(steps))
        if moves:
            yield self.connection.execute(_MAKE_MOVE, _MOVE.arrays(moves))


def _waiting(left: Foretold) -> WaitingRow:
    decision, deployment = left.decision, left.decision.deployment
    return WaitingRow(deployment.id, deployment.version, decision.due_at, decision.reason, left.waits_for)
