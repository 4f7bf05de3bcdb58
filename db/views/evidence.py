"""The read for people: how the evidence of a judged canary came to be."""

from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from db.views.rollouts import RolloutView
from domain.cycle.rollout import judging_of
from domain.judge.judge import Point, limits_of

_POINTS = """
    SELECT at, weight, canary, canary_failed, control, control_failed, harm, good
      FROM evidence_points WHERE rollout_id = %s ORDER BY at
"""


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """The points that were kept of a judged canary, and what the log e-values must reach; None without a judge.

    `compared_with`: control, which is the old revision, or baseline, which is its fresh replicas.
    """

    compared_with: str
    harm_limit: float | None
    good_limit: float | None
    points: list[Point]


def evidence_shown(connection: Connection[Any], rollout: RolloutView) -> EvidenceView:
    """Read the evidence of a rollout, under way or ended."""
    judging = judging_of(rollout.snapshot.policy)
    if judging is None or judging.settings is None:
        return EvidenceView("control", None, None, [])
    limits = limits_of(judging.settings, had_copies=judging.copied > 0)
    points = connection.cursor(row_factory=class_row(Point)).execute(_POINTS, (rollout.id,)).fetchall()
    compared_with = "baseline" if judging.has_baseline else "control"
    return EvidenceView(compared_with, limits.harm, limits.good, points)
