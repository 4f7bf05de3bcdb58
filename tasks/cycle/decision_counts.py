"""What is counted of decisions, a chunk at a time."""

from collections import Counter

from domain.handlers import HANDLERS
from domain.model.deployment import Verdict
from tasks.cycle.chunk import ChunkResult
from tasks.seen.observed import (
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


def count_chunk(handler: str, chunk: ChunkResult, seconds: float) -> None:
    """Count one that is committed; one that found nothing is not. `seconds`: how long its transaction took."""
    if not chunk.seen:
        return
    decisions, applied = chunk.decided.decisions, chunk.applied
    verdicts = Counter(decision.verdict.value for decision in decisions)
    for verdict, count in (verdicts + Counter({Verdict.SKIPPED.value: chunk.glanced})).items():
        DECISIONS.labels(handler, verdict).inc(count)
    WAVES.labels(handler).inc(sum(bool(decision.changes) for decision in decisions))
    ROUTES_CREATED.inc(applied.created)
    ROUTES_PROMOTED.inc(applied.promoted)
    ROUTES_DRAINED.inc(applied.drained)
    DECISION_LATENCY.labels(handler).observe(chunk.late + seconds)
    CHUNK_SECONDS.labels(handler).observe(seconds)
