"""The coordinator runs a handler on all marked deployments: claim, load, decide, apply, log, wake.

A chunk that Postgres refuses is halved until the bad deployment is found.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TypeVar
from uuid import UUID

import psycopg
import structlog
from psycopg import Connection
from sqlalchemy import Engine

from db.commands.execute import execute_pending
from db.connection.transactions import in_transaction
from db.cycle.applier import StrategyApplyResult, apply, kept_steps
from db.cycle.claim import (
    Claim,
    Claimed,
    Load,
    ask_hosts_to_prepare,
    claim_due,
    claim_these,
    load,
    load_what_is_readable,
    mark_what_is_off,
)
from db.devices import wake
from db.replicas.host_placement import Placing
from db.unreachable import is_unreachable
from domain.cycle.transitions import Bounds, ClassifiedDecision, classify
from domain.cycle.writes import (
    DeploymentWait,
    drained_routes,
    new_routes,
    plan_writes,
    steps_to_build_on,
    woken_routes,
)
from domain.handlers.base import DeploymentExecutionResult, DeploymentHandler
from domain.handlers.dispatch import HandlerRegistry
from domain.model.decision import Decision
from domain.model.deployment import Deployment
from domain.model.lifecycle_events import (
    DoDeploymentLifecycleEvent,
    DoDeploymentLifecycleIfNeededEvent,
    RouteLifecycleType,
)
from domain.model.states import RouteStatus, Verdict
from domain.outbox.cloud_events import told_by_decisions
from domain.text.errors import InvalidInputError
from tasks.cycle.decision_log import ChunkResult, count_chunk, log_chunk
from tasks.redis.locks import Slot, Slots
from tasks.redis.wake import Waker, events_of, route_key
from tasks.telemetry.task_metrics import CHUNKS_FAILED


def write_decisions(  # noqa: PLR0913  (all that a transaction is of)
    connection: Connection,
    phase: str,
    decisions: Sequence[ClassifiedDecision],
    claim: Claim,
    placing: Placing,
    glanced: Sequence[DeploymentWait] = (),
) -> StrategyApplyResult:
    """Write these decisions and the waits that a glance found: two reads, a plan, one write. `phase`: the handler.

    Raises StaleSnapshotError.
    """
    if woken := woken_routes(decisions):
        wake(connection, woken)
    grounds = placing.grounds(connection, new_routes(decisions), drained_routes(decisions))
    steps = kept_steps(connection, steps_to_build_on(decisions))
    writes = plan_writes(phase, decisions, claim, claim.now, grounds, steps, glanced)
    placing.add(placement.host for _, placement in writes.placed)
    events = (
        told_by_decisions(writes.effects, phase, claim.now, claim.waiting_for_person) if claim.has_subscribers else ()
    )
    return apply(connection, writes, events)


Thing = TypeVar("Thing")
Result = TypeVar("Result")


def in_halves(
    things: Sequence[Thing],
    error: Exception,
    work: Callable[[Sequence[Thing]], Result],
    blame: Callable[[Thing, Exception], Result],
) -> list[Result]:
    """Work on each half, and on its halves where it raises again. `error`: what `work` raised for all things.

    The thing that is bad is given to `blame`, with what it raised. A Postgres that cannot be reached is nobody's fault:
    then the error is raised.

        a b c d raised  ->  [work(a b), work(c), blame(d)]
    """
    if is_unreachable(error):
        raise error
    if len(things) == 1:
        return [blame(things[0], error)]
    middle = len(things) // 2
    return [*_half(things[:middle], work, blame), *_half(things[middle:], work, blame)]


def _half(
    things: Sequence[Thing],
    work: Callable[[Sequence[Thing]], Result],
    blame: Callable[[Thing, Exception], Result],
) -> list[Result]:
    try:
        return [work(things)]
    except Exception as error:  # noqa: BLE001  (whatever it is, it belongs to one thing of this half)
        return in_halves(things, error, work, blame)


_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DeploymentCoordinator:
    """Runs every deployment event in the same way. `chunk`: how many deployments one transaction takes."""

    engine: Engine
    slots: Slots
    waker: Waker
    handlers: HandlerRegistry
    chunk: int
    work_seconds: float
    stopping: threading.Event
    placing: Placing = field(default_factory=Placing)

    def process_deployment_lifecycle(self, event: DoDeploymentLifecycleEvent) -> int:
        """Run the event's handler until nothing is due or its time is up; returns the deployments looked at.

        A long tick first marks what SQL finds to be off. Raises InvalidInputError for an event without a handler.
        """
        handler = self.handlers.get(event.key)
        if handler is None:
            raise InvalidInputError(
                f"no handler answers to {event}; there are {', '.join(map(str, self.handlers))}", field="lifecycle_type"
            )
        with self.slots.hold(handler.lock_id, str(handler.event)) as slot:
            if slot is None:
                return 0
            if not isinstance(event, DoDeploymentLifecycleIfNeededEvent):
                in_transaction(self.engine, lambda connection: mark_what_is_off(connection, handler.targets))
            return self._work(handler, slot)

    def process_chunk(self, handler: DeploymentHandler) -> ChunkResult:
        """Work on one chunk in one transaction; if it fails, work on halves of it until the bad deployment is found."""
        claimed: list[UUID] = []

        def work(connection: Connection) -> ChunkResult:
            claim = claim_due(connection, handler.targets, self.chunk)
            claimed[:] = claim.ids
            waits, others = _glance_at(handler, claim)
            ask_hosts_to_prepare(connection, others)
            result = handler.execute(load(connection, others), claim.now)
            return self._apply(connection, handler, result, claim, waits)

        try:
            return self._in_transaction(handler, work)
        except Exception as error:  # the applier or Postgres refused: find out which deployment it is
            if not claimed:
                raise
            CHUNKS_FAILED.labels(handler.name).inc()
            _log.warning("chunk failed, trying halves", handler=handler.name, size=len(claimed), error=str(error))
            halves = in_halves(claimed, error, partial(self._retry, handler), partial(self._blame, handler))
            return sum(halves, ChunkResult())

    def _in_transaction(self, handler: DeploymentHandler, work: Callable[[Connection], ChunkResult]) -> ChunkResult:
        """Run the work in a transaction, and log and count its decisions after the commit."""
        began = monotonic()
        result = in_transaction(self.engine, work)
        seconds = monotonic() - began
        log_chunk(self.engine, handler.name, result, seconds)
        count_chunk(handler.name, result, seconds)
        return result

    def _work(self, handler: DeploymentHandler, slot: Slot) -> int:
        total, ends_at = 0, monotonic() + self.work_seconds
        while monotonic() < ends_at and not self.stopping.is_set():
            result = self.process_chunk(handler)
            total += result.looked_at
            self._wake(result, handler)
            if result.has_pending_commands:
                self.waker.after_change(execute_pending(self.engine))
            if not result.looked_at or not slot.is_held:
                break
            if result.looked_at >= self.chunk and self.slots.is_one_free(handler.lock_id):
                self.waker.send([str(handler.event)])  # there may be enough for another worker
        return total

    def _wake(self, result: ChunkResult, handler: DeploymentHandler) -> None:
        applied, events = result.applied, events_of(result.due - handler.targets)
        events += [route_key(RouteLifecycleType.START, host) for host in sorted(applied.starting)]
        if applied.unplaced:
            events.append(route_key(RouteLifecycleType.START))
        events += [route_key(RouteLifecycleType.STOP, host) for host in sorted(applied.stopping)]
        if any(decision.changes.woken or _is_waking(decision.deployment) for decision in result.result.decisions):
            events.append(route_key(RouteLifecycleType.PROBE))
        weighed = any(decision.changes.stage is not None for decision in result.result.decisions)
        self.waker.send(events, traffic=bool(applied.drained or applied.promoted or weighed))

    def _retry(self, handler: DeploymentHandler, ids: Sequence[UUID]) -> ChunkResult:
        def work(connection: Connection) -> ChunkResult:
            claim = claim_these(connection, ids)
            result = handler.execute(_targeted(connection, handler, claim), claim.now)
            return self._apply(connection, handler, result, claim)

        return self._in_transaction(handler, work)

    def _apply(
        self,
        connection: Connection,
        handler: DeploymentHandler,
        result: DeploymentExecutionResult,
        claim: Claim,
        waits: Sequence[DeploymentWait] = (),
    ) -> ChunkResult:
        decisions = result.decisions
        if not decisions and not waits:
            return ChunkResult(has_pending_commands=claim.has_pending_commands)
        applied = write_decisions(connection, handler.name, decisions, claim, self.placing, waits)
        due = frozenset(
            decision.to for decision in decisions if decision.due_at is not None and decision.due_at <= claim.now
        )
        return ChunkResult(result, len(waits), applied, due, claim.late, claim.has_pending_commands)

    def _blame(self, handler: DeploymentHandler, deployment_id: UUID, error: Exception) -> ChunkResult:
        """Record the failed write as an error of this deployment alone."""
        fault = f"{_name(error)}: {str(error).partition(chr(10))[0]}"
        _log.error("deployment failed", handler=handler.name, deployment=str(deployment_id), error=fault)

        def work(connection: Connection) -> ChunkResult:
            claim = claim_these(connection, [deployment_id])
            targeted = _targeted(connection, handler, claim, load_what_is_readable)
            failed = [_error_of(handler, deployment, fault, claim) for deployment in targeted]
            return self._apply(connection, handler, DeploymentExecutionResult(tuple(failed)), claim)

        return self._in_transaction(handler, work)


def _glance_at(handler: DeploymentHandler, claim: Claim) -> tuple[list[DeploymentWait], list[Claimed]]:
    """Split the claim into deployments that wait, as a glance shows, and those whose routes must be loaded."""
    waits, others = [], []
    for claimed in claim.deployments:
        glimpse = claimed.glimpse()
        wait = handler.glance(glimpse, claim.now) if glimpse else None
        if wait is None:
            others.append(claimed)
        else:
            waits.append(DeploymentWait(claimed.row.id, claimed.row.version, wait.due_at, wait.reason, None))
    return waits, others


def _targeted(
    connection: Connection, handler: DeploymentHandler, claim: Claim, load: Load = load
) -> tuple[Deployment, ...]:
    """Load the deployments that the handler still targets. Others moved on while we waited for their locks."""
    return load(connection, [claimed for claimed in claim.deployments if claimed.status in handler.targets])


def _name(error: Exception) -> str:
    """Name the constraint that refused the write; the kind of error if none did."""
    cause = error.__cause__ or error
    return (isinstance(cause, psycopg.Error) and cause.diag.constraint_name) or type(cause).__name__


def _error_of(handler: DeploymentHandler, deployment: Deployment, fault: str, claim: Claim) -> ClassifiedDecision:
    decision = Decision(Verdict.ERROR, fault)
    try:
        return handler.classified(decision, deployment, claim.now)
    except Exception:  # noqa: BLE001  (its limits may be what went wrong)
        return classify(decision, deployment, handler.transitions, Bounds(), claim.now)


def _is_waking(deployment: Deployment) -> bool:
    """Whether parked replicas that sleep are needed now, so that their hosts should look at once."""
    forward = deployment.status.goes_forward
    target = deployment.deploying_revision_id if forward else deployment.current_revision_id
    return any(
        route.parked_until is not None and route.status is RouteStatus.PROVISIONING and route.revision_id == target
        for route in deployment.routes
    )
