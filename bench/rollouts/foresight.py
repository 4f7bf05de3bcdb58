"""Whether rollouts of the example service end when a rehearsal says: nine of ten within its band of nine of ten.

Before each rollout it is rehearsed with what the ones before it taught; then it is done by real workers.
"""

import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

import psycopg

from bench.stage import Stage, rolling, stage
from db.views.ahead.foresight import Foreseeable, foreseeable
from db.views.deployments import deployment_named
from domain.foresight.plan.subject import Subject, after_activation
from domain.foresight.rehearsal.rehearse import Band, rehearse
from domain.steering.activation import ActivationRequest
from domain.strategies import parse_policy
from tests.support.stack.stack import ROOT

TAUGHT = 10
"""Rollouts that only teach."""
RUNS = 500
SHORT, FULL = 40, 200
_TOOK = "extract(epoch FROM ended_at - started_at)::float8"
_POLICY = rolling(1, 1)
_EXAMPLE: Mapping[str, Any] = {
    "command": [sys.executable, str(ROOT / "examples" / "http_service.py")],
    "health_check": {"path": "/health", "interval_seconds": 0.5},
    "drain_seconds": 0,
}


@dataclass(frozen=True, slots=True)
class Held:
    """A rollout against its rehearsal, in seconds."""

    low: float
    high: float
    took: float

    @property
    def is_within(self) -> bool:
        """Whether it ended within the band."""
        return self.low <= self.took <= self.high


def measure(*, full: bool) -> dict[str, Any]:
    """The share that ended within the band; 85 to 95 % are right, and a few rollouts do not tell."""
    held = run(FULL if full else SHORT)
    share = 100 * sum(each.is_within for each in held) / len(held)
    row = {
        "rollouts": len(held),
        "within the band, %": share,
        "sooner": sum(each.took < each.low for each in held),
        "later": sum(each.took > each.high for each in held),
        "width of the band, shares of the time": round(median((each.high - each.low) / each.took for each in held), 2),
    }
    judged = {"within the band, %": [share], "beside the band, %": [100 - share]} if full else {}
    return {"rows": [row], "passes": judged, "details": [(each.low, each.took, each.high) for each in held]}


def run(rollouts: int) -> list[Held]:
    """Rollouts of three replicas, from one revision to the other and back."""
    with stage() as made:
        made.start_workers("worker1", "worker2")
        made.start_beat()
        made.deploy("web", 3, _POLICY, _EXAMPLE)
        held = [_one(made, number) for number in range(TAUGHT + rollouts)]
    return held[TAUGHT:]


def _one(made: Stage, number: int) -> Held:
    revision = f"v{2 - number % 2}"
    band = _rehearsed(made, revision) if number >= TAUGHT else Band(0, 0)
    made.activate("web", revision)
    made.wait_until_idle("web", within=120)
    (ended,) = made.rows(f"SELECT {_TOOK} AS took FROM rollouts ORDER BY started_at DESC LIMIT 1")
    return Held(band.low, band.high, ended["took"])


def _rehearsed(made: Stage, revision: str) -> Band:
    with psycopg.connect(made.database) as connection:
        view = deployment_named(connection, "web")
        known: Foreseeable = foreseeable(connection, view)
        ids: dict[str, Any] = dict(connection.execute("SELECT name, id FROM revisions").fetchall())
    request = ActivationRequest(ids[revision], revision, None, parse_policy(_POLICY))
    subject = Subject(after_activation(known.deployment, request, known.now))
    band = rehearse(subject, known.now, known.learned, random.Random(revision).random, RUNS).band
    if band is None:
        raise RuntimeError("no run of the rehearsal completed")
    return band
