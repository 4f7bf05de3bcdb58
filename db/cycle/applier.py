"""The bulk write: what a chunk of decisions leaves behind becomes rows, set by set, in the claim's transaction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection, Cursor

from db.cycle.claim import Claim, HistoryHead
from db.cycle.records import record_history, record_rollouts, record_steps
from db.cycle.routes import StrategyApplyResult, record_routes
from db.cycle.values import DEPLOYMENT, assigned, deployment_values
from db.locking.rows import columns
from db.outbox.written import write_events
from domain.cycle.foretold import Foretold, NewRoute
from domain.cycle.transitions import ClassifiedDecision
from domain.outbox.cloud_events import CloudEvent

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


@dataclass(frozen=True, slots=True)
class StrategyResultApplier:
    """The one write. `phase` is the handler's name, kept as the actor of each history record."""

    connection: Connection
    phase: str

    def apply(
        self,
        left: Sequence[Foretold],
        placed: Sequence[tuple[NewRoute, str | None]],
        told: Sequence[CloudEvent],
        claim: Claim,
        glanced: Sequence[WaitingRow] = (),
    ) -> StrategyApplyResult:
        """Write a chunk, and the waits that a glance told. Raises StaleSnapshotError when a version is not as read.

        `placed`: the new routes with their hosts; `told`: the events that subscribers are told.

        Routes before deployments, and of the routes promotions before drains: each statement is judged by the budgets
        of Postgres as its deployment stands at that moment: still deploying, its new replicas in traffic.
        """
        at = claim.now
        changing = [each for each in left if each.key]
        waiting = [_waiting(each.decision) for each in left if not each.key]
        routes = record_routes(self.connection, changing, placed, at)
        heads = record_history(self.connection, self.phase, changing, claim.heads, at) if changing else []
        sent = [*self._change(changing, heads), *self._wait([*waiting, *glanced])]
        record_rollouts(self.connection, left, at)
        record_steps(self.connection, self.phase, changing, at)
        write_events(self.connection, told)
        written = sum(cursor.rowcount for cursor in sent)  # asked for last, so that Postgres works meanwhile
        if written != (asked := len(left) + len(glanced)):
            raise StaleSnapshotError(f"{asked - written} of {asked} deployments changed while they were locked")
        return routes.result()

    def _wait(self, waiting: Sequence[WaitingRow]) -> Iterator[Cursor]:
        """Only the next look and the reason of a deployment that waits are written."""
        if waiting:
            yield self.connection.execute(_WAIT, _WAITING.arrays(waiting))

    def _change(self, changing: Sequence[Foretold], heads: Sequence[HistoryHead]) -> Iterator[Cursor]:
        """Most decisions are one step of many, for which few columns have to travel."""
        steps, moves = [], []
        for each, head in zip(changing, heads, strict=True):
            decision = each.decision
            told = (decision.deployment.version + 1, decision.due_at, decision.reason, head.id, head.key)
            if each.deployment is None:
                steps.append((decision.deployment.id, decision.attempts, *told))
            else:
                moves.append((*deployment_values(each.deployment), *told))
        if steps:
            yield self.connection.execute(_TAKE_STEP, _STEP.arrays(steps))
        if moves:
            yield self.connection.execute(_MAKE_MOVE, _MOVE.arrays(moves))


def _waiting(decision: ClassifiedDecision) -> WaitingRow:
    deployment = decision.deployment
    return WaitingRow(deployment.id, deployment.version, decision.due_at, decision.reason)
