"""Weights of canaries: set, known by the proxies, and held against what was answered."""

import math

from sqlalchemy import Engine

from tests.support.proxies.edge import Edge
from tests.support.rows.deployments import Made, read, write
from tests.support.stack.waiting import eventually

_LIKELY = 4.9
"""Standard deviations, outside of which 1 of 1,000,000 binomial counts lies."""


def weigh(engine: Engine, made: Made, weight: int | None) -> None:
    query = "UPDATE rollouts SET weight = %s, stage = stage + 1, weight_known_at = NULL WHERE id = %s"
    write(engine, query, weight, made.rollout_id)


def _known(edge: Edge, made: Made) -> bool:
    query = "SELECT weight_known_at IS NOT NULL AS known FROM rollouts WHERE id = %s"
    return bool(read(edge.routes.engine, query, made.rollout_id)[0]["known"])


def set_weight(edge: Edge, made: Made, weight: int) -> None:
    weigh(edge.routes.engine, made, weight)
    edge.routes.tell()
    eventually(lambda: _known(edge, made), what=f"the proxy knows {weight}")


def is_likely(count: int, asked: int, share: float) -> bool:
    """Whether a binomial count of this share is so far from what is expected at most once in 1,000,000 times."""
    return abs(count - asked * share) < _LIKELY * math.sqrt(asked * share * (1 - share))
