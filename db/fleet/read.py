"""The read for Prometheus: what is true of the whole fleet, in one snapshot of Postgres. No lock is taken."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection

from db.fleet.measures import MEASURES

_ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

_ENDED = "SELECT strategy, outcome, seconds, buckets FROM rollout_counts"
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
    ended = [
        EndedRollouts(strategy, outcome, seconds, tuple(buckets))
        for strategy, outcome, seconds, buckets in cursor.execute(_ENDED).fetchall()
    ]
    ((bounds,),) = cursor.execute(_BOUNDS).fetchall()
    return FleetView(samples, ended, tuple(bounds))
