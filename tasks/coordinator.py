"""One pass of a handler over what is marked: claim, decide, classify, apply, wake. It knows no lifecycle by name."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from uuid import UUID

import psycopg
import structlog
from psycopg import Connection
from sqlalchemy import Engine

from db.cycle.applier import StrategyApplyResult, StrategyResultApplier
from db.cycle.claim import Claim, claim_due, lock_deployments, mark_what_is_off
from db.engine import in_transaction
from domain.changes import Decision
from domain.errors import InvalidInputError
from domain.events import DoDeploymentLifecycleEvent
from domain.handlers import HandlerRegistry
from domain.handlers.base import DeploymentHandler
from domain.model import Deployment, DeploymentLifecycleStatus, Verdict
from domain.replicas.events import RouteLifecycleType
from domain.transitions import ClassifiedDecision, Limits, classify
from tasks.redis.locks import Slot, Slots
from tasks.redis.wake import Waker

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """What one transaction did: deployments looked at, what was written, and the statuses to look at next."""

    seen: int = 0
    applied: StrategyApplyResult = field(default_factory=StrategyApplyResult)
    due: frozenset[DeploymentLifecycleStatus] = field(default=frozenset())


@dataclass(frozen=True, slots=True)
class DeploymentCoordinator:
    """The generic path of every deployment event. `chunk`: deployments for each transaction."""

    engine: Engine
    slots: Slots
    waker: Waker
    handlers: HandlerRegistry
    chunk: int
    work_seconds: float
    stopping: threading.Event

    def process_deployment_lifecycle(self, event: DoDeploymentLifecycleEvent, *, everything: bool) -> int:
        """Run the event's handler until nothing is due or its time is up; returns the deployments looked at.

        `everything`: first mark what SQL finds to be off (the long tick). Raises InvalidInputError for unknown events.
        """
        handler = self.handlers.get(DoDeploymentLifecycleEvent(event.lifecycle_type, event.sub_step))
        if handler is None:
            raise InvalidInputError(
                f"no handler answers to {event}; there are {', '.join(map(str, self.handlers))}", field="lifecycle_type"
            )
        with self.slots.hold(handler.lock_id, str(handler.event)) as slot:
            if slot is None:
                return 0
            if everything:
                in_transaction(self.engine, lambda connection: mark_what_is_off(connection, handler.targets))
            return self._work(handler, slot)

    def process_chunk(self, handler: DeploymentHandler) -> ChunkResult:
        """Claim and work on one chunk in one transaction; when that fails, in halves, down to the one that is bad."""
        claimed: list[UUID] = []

        def work(connection: Connection) -> ChunkResult:
            claim = claim_due(connection, handler.targets, self.chunk, handler.glance)
            claimed[:] = [*(one.id for one in claim.deployments), *(one.deployment.id for one in claim.waits)]
            return _decide_and_apply(connection, handler, claim.deployments, claim)

        try:
            return in_transaction(self.engine, work)
        except Exception as error:  # the applier or Postgres refused: find out which deployment it is
            if not claimed:
                raise
            _log.warning("chunk failed, trying halves", handler=handler.name, size=len(claimed), error=str(error))
            return self._halve(handler, claimed, error)

    def _work(self, handler: DeploymentHandler, slot: Slot) -> int:
        seen, ends_at = 0, monotonic() + self.work_seconds
        while monotonic() < ends_at and not self.stopping.is_set():
            result = self.process_chunk(handler)
            seen += result.seen
            self._wake(result, handler)
            if not result.seen or not slot.is_held:
                break
            if result.seen >= self.chunk and self.slots.is_one_free(handler.lock_id):
                self.waker.again([str(handler.event)])  # there may be enough for another worker
        return seen

    def _wake(self, result: ChunkResult, handler: DeploymentHandler) -> None:
        self.waker.deployments(result.due - handler.targets)
        if result.applied.drained or result.applied.promoted:
            self.waker.traffic()
        if result.applied.created:
            self.waker.routes(RouteLifecycleType.START)
        if result.applied.drained:
            self.waker.routes(RouteLifecycleType.STOP)

    def _halve(self, handler: DeploymentHandler, ids: Sequence[UUID], error: Exception) -> ChunkResult:
        if len(ids) == 1:
            return self._blame(handler, ids[0], error)
        middle = len(ids) // 2
        halves = [self._again(handler, ids[:middle]), self._again(handler, ids[middle:])]
        return ChunkResult(
            seen=sum(half.seen for half in halves),
            applied=halves[0].applied + halves[1].applied,
            due=halves[0].due | halves[1].due,
        )

    def _again(self, handler: DeploymentHandler, ids: Sequence[UUID]) -> ChunkResult:
        def work(connection: Connection) -> ChunkResult:
            claim = lock_deployments(connection, ids)
            left = [one for one in claim.deployments if one.status in handler.targets]
            return _decide_and_apply(connection, handler, left, claim)

        try:
            return in_transaction(self.engine, work)
        except Exception as error:  # noqa: BLE001  (whatever it is, it belongs to one deployment of this half)
            return self._halve(handler, ids, error)

    def _blame(self, handler: DeploymentHandler, deployment_id: UUID, error: Exception) -> ChunkResult:
        """The failed write becomes an error of that deployment alone."""
        said = f"{_name(error)}: {str(error).partition(chr(10))[0]}"
        _log.error("deployment failed", handler=handler.name, deployment=str(deployment_id), error=said)

        def work(connection: Connection) -> ChunkResult:
            claim = lock_deployments(connection, [deployment_id])
            failed = [_failed(handler, one, said, claim) for one in claim.deployments if one.status in handler.targets]
            return _apply(connection, handler, failed, claim)

        return in_transaction(self.engine, work)


def _decide_and_apply(
    connection: Connection, handler: DeploymentHandler, batch: Sequence[Deployment], claim: Claim
) -> ChunkResult:
    return _apply(connection, handler, handler.execute(batch, claim.now).everything + claim.waits, claim)


def _apply(
    connection: Connection, handler: DeploymentHandler, decisions: Sequence[ClassifiedDecision], claim: Claim
) -> ChunkResult:
    if not decisions:
        return ChunkResult()
    applied = StrategyResultApplier(connection, handler.name).apply(decisions, claim)
    due = frozenset(one.to for one in decisions if one.due_at is not None and one.due_at <= claim.now)
    return ChunkResult(len(decisions), applied, due)


def _name(error: Exception) -> str:
    """The constraint that refused the write, where it was one; the kind of error otherwise."""
    cause = error.__cause__ or error
    return (isinstance(cause, psycopg.Error) and cause.diag.constraint_name) or type(cause).__name__


def _failed(handler: DeploymentHandler, deployment: Deployment, said: str, claim: Claim) -> ClassifiedDecision:
    decision = Decision(Verdict.ERROR, said)
    try:
        limits = handler.limits(deployment)
    except Exception:  # noqa: BLE001  (they may be what went wrong)
        limits = Limits()
    return classify(decision, deployment, handler.transitions, limits, claim.now)
