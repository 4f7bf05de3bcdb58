"""The read for Prometheus: what is true of the whole fleet, in one snapshot of Postgres. No lock is taken."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from psycopg import Connection

from db.fleet.measures import MEASURES
from domain.traffic.callers import MOST_NAMED, Requests

_ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_UNCOMPILED = "SET LOCAL jit = off"
"""Postgres expects that many deployments are silent, and would compile for longer than such a query takes."""

_ENDED = """
    SELECT c.strategy, c.outcome, c.bucket, sum(c.count)::int8 AS count, sum(c.seconds) AS seconds
      FROM (SELECT * FROM rollout_counts
            UNION ALL
            SELECT new.* FROM rollouts o, LATERAL count_ended(o) new
             WHERE o.outcome IS NOT NULL AND NOT o.is_sealed) c
     GROUP BY c.strategy, c.outcome, c.bucket ORDER BY c.strategy, c.outcome, c.bucket
"""
"""Rollouts that are counted, and those that ended since and have no receipt yet."""

_QUEUES = "SELECT DISTINCT queue FROM subscriptions WHERE queue IS NOT NULL ORDER BY 1"

_BOUNDS = "SELECT rollout_seconds()"

_MOST_SUMS = 3 * MOST_NAMED
"""Each deployment has some revisions that answered within the hour."""
_REQUESTS = f"""
    SELECT s.deployment, coalesce(r.name, ''), s.fine, s.redirected, s.refused, s.failed, s.waited
      FROM request_sums s LEFT JOIN revisions r ON r.id = s.revision_id
     ORDER BY s.at DESC, s.deployment, s.revision_id LIMIT {_MOST_SUMS}
"""


@dataclass(frozen=True, slots=True)
class EndedRollouts:
    """Rollouts of one strategy that ended in one way. `buckets`: how many took as long as which bound, not added up."""

    strategy: str
    outcome: str
    seconds: float
    buckets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FleetView:
    """Samples by measure, each with its labels and value; the rollouts that have ended; their bounds in seconds.

    `requests`: what callers got, by deployment and revision, as far as they are named. `told_queues`: those in which
    subscribers wait for events.
    """

    samples: Mapping[str, Sequence[tuple[tuple[str, ...], float]]]
    ended: Sequence[EndedRollouts]
    bounds: Sequence[float]
    requests: Mapping[tuple[str, str], Requests]
    told_queues: Sequence[str]


def read_fleet(connection: Connection[Any]) -> FleetView:
    """All of it. The connection must be at the beginning of a transaction."""
    cursor = connection.cursor()
    cursor.execute(_ONE_SNAPSHOT)
    cursor.execute(_UNCOMPILED)
    samples = {
        measure.name: [(tuple(labels), float(value)) for *labels, value in cursor.execute(measure.query).fetchall()]
        for measure in MEASURES
    }
    ((bounds,),) = cursor.execute(_BOUNDS).fetchall()
    ended = _by_way(cursor.execute(_ENDED).fetchall(), len(bounds) + 1)
    requests = {(name, of): Requests.read(*its) for name, of, *its in cursor.execute(_REQUESTS).fetchall()}
    queues = [queue for (queue,) in cursor.execute(_QUEUES).fetchall()]
    return FleetView(samples, ended, tuple(bounds), requests, queues)


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
