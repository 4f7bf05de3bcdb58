"""The pure decision alone: one cycle of a rolling update that creates and drains, without a database."""

import time
from statistics import median
from typing import Any

from domain.cycle.evaluator import EVALUATOR
from tests.support.pictures.pictures import NOW, deploying

REPLICAS = (3, 10, 100)


def measure(*, full: bool) -> dict[str, Any]:
    """Microseconds of processor time for deployments with so many routes."""
    return {"rows": [_decide(replicas, rounds=50 if full else 10) for replicas in REPLICAS]}


def _decide(replicas: int, rounds: int, times: int = 500) -> dict[str, Any]:
    snapshot = deploying("■" * replicas + "|", n=replicas)
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(times):
            EVALUATOR.evaluate_one(snapshot, NOW)
        taken.append((time.process_time() - began) / times * 1e6)
    return {"routes": replicas, "median_us": median(taken), "least_us": min(taken)}
