"""Reports decisions: a log line for each change, a span for each step, and counts for each chunk."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self
from uuid import UUID

import structlog
from sqlalchemy import Engine

from db.connection.transactions import in_transaction
from db.cycle.applier import StrategyApplyResult
from db.cycle.snapshots import revision_names, traceparents
from db.unreachable import AWAY
from domain.cycle.transitions import ClassifiedDecision
from domain.handlers.base import DeploymentExecutionResult
from domain.handlers.dispatch import HANDLERS
from domain.model.deployment import Deployment
from domain.model.states import DeploymentLifecycleStatus, Verdict
from tasks.telemetry.task_metrics import (
    CHUNK_SECONDS,
    DECISION_LATENCY,
    DECISIONS,
    ROUTES_CREATED,
    ROUTES_DRAINED,
    ROUTES_PROMOTED,
    WAVES,
)
from tasks.telemetry.tracing import spans

if TYPE_CHECKING:
    from tasks.telemetry.spans import Spans


_BAD = frozenset({Verdict.ERROR, Verdict.EXPIRED, Verdict.GIVE_UP})
_NAMES: dict[UUID, str] = {}
"""The names of revisions, which never change: each name is read once in a process."""
_MOST_NAMES = 10_000
_log = structlog.get_logger(__name__)
_levels = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """The decisions of one transaction, and the routes that it wrote.

    `glanced`: the number of further deployments that wait, as a glance showed.
    """

    result: DeploymentExecutionResult = field(default_factory=DeploymentExecutionResult)
    glanced: int = 0
    applied: StrategyApplyResult = field(default_factory=StrategyApplyResult)
    due: frozenset[DeploymentLifecycleStatus] = frozenset()
    """The statuses of the deployments that a handler must look at again at once."""
    late: float = 0.0
    """The seconds by which the transaction was late for the deployment that was due first."""
    has_pending_commands: bool = False
    """Whether commands were pending when its deployments were claimed."""

    @property
    def looked_at(self) -> int:
        return len(self.result.decisions) + self.glanced

    def __add__(self, other: Self) -> Self:
        late = max(self.late, other.late)
        return type(self)(
            self.result + other.result,
            self.glanced + other.glanced,
            self.applied + other.applied,
            self.due | other.due,
            late,
            self.has_pending_commands or other.has_pending_commands,
        )


def log_chunk(engine: Engine, handler: str, chunk: ChunkResult, seconds: float) -> None:
    """Each changing decision at level info, or warning where it is bad news; the chunk at level debug.

    A span for each step, where traces are sent. `seconds`: the duration of its transaction. Lines of a level that is
    off are not made at all.
    """
    result = chunk.result
    changing = [decision for decision in result.decisions if decision.changes_anything]
    tracer, is_logged = spans(), _levels.isEnabledFor(logging.INFO)
    if changing and (tracer or is_logged):
        names = _names(engine, {_revision_id(decision.deployment) for decision in changing})
        lines = [(decision, {"handler": handler, **_facts(decision, names)}) for decision in changing]
        for decision, facts in lines if is_logged else ():
            _log.log(logging.WARNING if decision.verdict in _BAD else logging.INFO, "decided", **facts)
        if tracer:
            _trace(engine, tracer, lines, seconds)
    if chunk.looked_at and _levels.isEnabledFor(logging.DEBUG):
        _log.debug(
            "chunk",
            handler=handler,
            seen=chunk.looked_at,
            successes=len(result.successes),
            need_retry=len(result.need_retry),
            skipped=len(result.skipped) + chunk.glanced,
            errors=len(result.errors),
            milliseconds=round(seconds * 1000, 1),
        )


def _trace(
    engine: Engine, tracer: "Spans", lines: Sequence[tuple[ClassifiedDecision, dict[str, object]]], seconds: float
) -> None:
    """Each step joins the trace of its task, with a link to the trace that asked for the rollout."""
    steps = [(decision, facts, rollout.id) for decision, facts in lines if (rollout := decision.deployment.rollout)]
    parents: Mapping[UUID, str] = {}
    with suppress(*AWAY):
        parents = in_transaction(engine, lambda connection: traceparents(connection, [step[2] for step in steps]))
    for decision, facts, rollout_id in steps:
        name = f"step of {decision.deployment.status}"
        tracer.step(name, facts, seconds, parents.get(rollout_id), bad=decision.verdict in _BAD)


def _facts(decision: ClassifiedDecision, names: Mapping[UUID | None, str]) -> dict[str, object]:
    deployment, changes = decision.deployment, decision.changes
    rollout = {}
    if deployment.rollout is not None:
        rollout = {"rollout": str(deployment.rollout.id), "step": deployment.rollout.steps + decision.is_step}
    return {
        "deployment": deployment.name,
        "revision": names.get(_revision_id(deployment)),
        **rollout,
        "verdict": decision.verdict.value,
        "from": str(deployment.status),
        "to": str(decision.to),
        "created": changes.created,
        "promoted": len(changes.promote_route_ids),
        "drained": len(changes.drain_route_ids),
        "reason": decision.reason,
    }


def _revision_id(deployment: Deployment) -> UUID | None:
    """The id of the revision that is on its way, else of the one that runs."""
    return deployment.deploying_revision_id or deployment.current_revision_id


def _names(engine: Engine, ids: set[UUID | None]) -> Mapping[UUID | None, str]:
    """Read names. The decisions are committed by now, so losing Postgres here costs a name and nothing else."""
    missing_ids: Sequence[UUID] = [each for each in ids if each is not None]
    if len(_NAMES) > _MOST_NAMES:
        _NAMES.clear()
    unknown = [revision_id for revision_id in missing_ids if revision_id not in _NAMES]
    with suppress(*AWAY):
        _NAMES.update(in_transaction(engine, lambda connection: revision_names(connection, unknown)) if unknown else {})
    return {revision_id: name for revision_id in missing_ids if (name := _NAMES.get(revision_id))}  # it may be cleared


for handler in HANDLERS.values():  # from the start, so that Prometheus sees the first decision of each as an increase
    WAVES.labels(handler.name)
    DECISION_LATENCY.labels(handler.name)
    CHUNK_SECONDS.labels(handler.name)


def count_chunk(handler: str, chunk: ChunkResult, seconds: float) -> None:
    """Count a committed chunk, unless it was empty. `seconds`: the duration of its transaction."""
    if not chunk.looked_at:
        return
    decisions, applied = chunk.result.decisions, chunk.applied
    verdicts = Counter(decision.verdict.value for decision in decisions)
    for verdict, count in (verdicts + Counter({Verdict.SKIPPED.value: chunk.glanced})).items():
        DECISIONS.labels(handler, verdict).inc(count)
    WAVES.labels(handler).inc(sum(bool(decision.changes) for decision in decisions))
    ROUTES_CREATED.inc(applied.created)
    ROUTES_PROMOTED.inc(applied.promoted)
    ROUTES_DRAINED.inc(applied.drained)
    DECISION_LATENCY.labels(handler).observe(chunk.late + seconds)
    CHUNK_SECONDS.labels(handler).observe(seconds)
