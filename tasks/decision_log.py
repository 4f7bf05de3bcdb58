"""What the log tells of decisions: a line for each that changes something, and one for each chunk."""

import logging

import structlog

from domain.handlers.base import DeploymentExecutionResult
from domain.transitions import ClassifiedDecision

_log = structlog.get_logger(__name__)
_levels = logging.getLogger(__name__)


def log_chunk(handler: str, decided: DeploymentExecutionResult, seconds: float) -> None:
    """Each changing decision and the chunk at level info; a chunk that only waits at level debug.

    `seconds`: how long its transaction took. Nothing is put together for a level that nobody listens to.
    """
    if not _levels.isEnabledFor(logging.INFO):
        return
    decisions = decided.decisions
    changing = [decision for decision in decisions if decision.changes_anything]
    level = logging.INFO if changing else logging.DEBUG
    if not decisions or not _levels.isEnabledFor(level):
        return
    for decision in changing:
        _log.info("decided", handler=handler, **_facts(decision))
    _log.log(
        level,
        "chunk",
        handler=handler,
        seen=len(decisions),
        successes=len(decided.successes),
        need_retry=len(decided.need_retry),
        skipped=len(decided.skipped),
        errors=len(decided.errors),
        milliseconds=round(seconds * 1000, 1),
    )


def _facts(decision: ClassifiedDecision) -> dict[str, object]:
    deployment, changes = decision.deployment, decision.changes
    rollout = {}
    if deployment.rollout is not None:
        rollout = {"rollout": str(deployment.rollout.id), "step": deployment.rollout.steps + 1}
    return {
        "deployment": deployment.name,
        **rollout,
        "verdict": decision.verdict.value,
        "from": str(deployment.status),
        "to": str(decision.to),
        "created": changes.created,
        "promoted": len(changes.promote_route_ids),
        "drained": len(changes.drain_route_ids),
        "reason": decision.reason,
    }
