"""The pure decision alone: one cycle of a rolling update that creates and drains, without a database."""

import time
from collections.abc import Callable
from statistics import median
from typing import Any

from domain.cycle.evaluator import EVALUATOR
from domain.model.decision import Decision, RouteChanges
from domain.strategies.base import deploying_revision
from domain.strategies.budget import Buckets, Budget, ids, worst_first
from domain.strategies.messages import creating, draining, steps
from tests.support.pictures.pictures import NOW, deploying

REPLICAS = (3, 10, 100)
_BUDGET = Budget(desired=3, ceiling=4, keep=2)


def measure(*, full: bool) -> dict[str, Any]:
    """Microseconds of processor time for deployments with so many routes, and of the parts that no decision lacks."""
    rows = [decide(replicas, rounds=50 if full else 10) for replicas in REPLICAS]
    return {"rows": rows, "passes": {f"µs, {row['routes']}": [row["least_us"]] for row in rows}}


def decide(replicas: int, rounds: int, times: int = 500) -> dict[str, Any]:
    """So many decisions in each round."""
    snapshot = deploying("■" * replicas + "|", n=replicas)
    target = deploying_revision(snapshot)
    buckets = Buckets.of(snapshot.routes, target, NOW)
    parts = {
        "buckets": lambda: Buckets.of(snapshot.routes, target, NOW),
        "order": lambda: worst_first(buckets.foreign),
        "sentence": lambda: steps(creating(1, buckets, _BUDGET, "new"), draining(1, _BUDGET)),
        "values": lambda: Decision.moved("", RouteChanges.create(target, 1, drain=ids(buckets.foreign[:1])), NOW),
    }
    taken = _microseconds(lambda: EVALUATOR.evaluate_one(snapshot, NOW), rounds, times)
    floor = {f"{name}_us": median(_microseconds(part, rounds, times)) for name, part in parts.items()}
    return {"routes": replicas, "median_us": median(taken), "least_us": min(taken), **floor}


def _microseconds(work: Callable[[], object], rounds: int, times: int) -> list[float]:
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(times):
            work()
        taken.append((time.process_time() - began) / times * 1e6)
    return taken
