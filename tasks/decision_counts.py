"""What is counted of decisions, a chunk at a time."""

from collections import Counter

from db.cycle.routes import StrategyApplyResult
from domain.handlers import HANDLERS
from domain.handlers.base import DeploymentExecutionResult
from tasks.observed import (
    CHUNK_SECONDS,
    DECISION_LATENCY,
    DECISIONS,
    ROUTES_CREATED,
    ROUTES_DRAINED,
    ROUTES_PROMOTED,
    WAVES,
)

for handler in HANDLERS.values():  # from the start, or the first decision of each would be no increase for Prometheus
    WAVES.labels(handler.name)
    DECISION_LATENCY.labels(handler.name)
    CHUNK_SECONDS.labels(handler.name)


def count_chunk(
    handler: str, decided: DeploymentExecutionResult, applied: StrategyApplyResult, late: float, seconds: float
) -> None:
    """Count one that is committed; one that found nothing is not. `late`, `seconds`: as in a chunk's result."""
    if not decided.decisions:
        return
    for verdict, count in Counter(decision.verdict.value for decision in decided.decisions).items():
        DECISIONS.labels(handler, verdict).inc(count)
    WAVES.labels(handler).inc(sum(bool(decision.changes) for decision in decided.decisions))
    ROUTES_CREATED.inc(applied.created)
    ROUTES_PROMOTED.inc(applied.promoted)
    ROUTES_DRAINED.inc(applied.drained)
    DECISION_LATENCY.labels(handler).observe(late + seconds)
    CHUNK_SECONDS.labels(handler).observe(seconds)
