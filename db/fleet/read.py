"""The read for Prometheus: what is true of the whole fleet, in one snapshot of Postgres. No lock is taken."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from psycopg import Connection

from db.fleet.measures import MEASURES

_ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

_ENDED = """
    SELECT c.strategy, c.outcome, c.bucket, sum(c.count)::int8 AS count, sum(c.seconds) AS seconds
      FROM (SELECT * FROM rollout_counts
            UNION ALL
            SELECT kept.* FROM rollouts o, LATERAL count_ended(o) kept WHERE o.outcome IS NOT NULL) c
     GROUP BY c.strategy, c.outcome, c.bucket ORDER BY c.strategy, c.outcome, c.bucket
"""
"""Rollouts whose rows were cut, and those that are there."""

_BOUNDS = "SELECT rollout_seconds()"


@dataclass(frozen=True, slots=True)
class EndedRollouts:
    """Rollouts of one strategy that ended in one way. `buckets`: how many took as long as which bound, not added up."""

    strategy: str
    outcome: str
    seconds: float
    buckets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FleetView:
    """Samples by measure, each with its labels and value; the rollouts that have ended; their bounds in seconds."""

    samples: Mapping[str, Sequence[tuple[tuple[str, ...], float]]]
    ended: Sequence[EndedRollouts]
    bounds: Sequence[float]


def read_fleet(connection: Connection[Any]) -> FleetView:
    """All of it. The connection must be at the beginning of a transaction."""
    cursor = connection.cursor()
    cursor.execute(_ONE_SNAPSHOT)
    samples = {
        measure.name: [(tuple(labels), float(value)) for *labels, value in cursor.execute(measure.query).fetchall()]
        for measure in MEASURES
    }
    ((bounds,),) = cursor.execute(_BOUNDS).fetchall()
    ended = _by_way(cursor.execute(_ENDED).fetchall(), len(bounds) + 1)
    return FleetView(samples, ended, tuple(bounds))


def _by_way(rows: Iterable[tuple[str, str, int, int, float]], size: int) -> list[EndedRollouts]:
    """`size`: how many buckets there are."""
    found = []
    for (strategy, outcome), same_way in groupby(rows, itemgetter(0, 1)):
        buckets, seconds = [0] * size, 0.0
        for *_, bucket, count, took in same_way:
            buckets[bucket - 1] = count
            seconds += took
        found.append(EndedRollouts(strategy, outcome, seconds, tuple(buckets)))
    return found
