"""Keeps what the judges of canaries have seen: one row of sums for each, into which every interval is folded."""

from collections.abc import Sequence
from dataclasses import astuple
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection
from pydantic import TypeAdapter

from domain.cycle.rollout import judging_of
from domain.judge.judge import Point, is_due, point_of
from domain.model.answer_counts import Answers, Interval
from domain.model.canary import NOTHING_SEEN, CanaryState, Evidence, Sums
from domain.strategies.builtin import stored_policy

_SUMS = TypeAdapter(Sums)

_EVIDENCE = "SELECT rollout_id, sums::text FROM evidence WHERE rollout_id = ANY(%(ids)b)"

_CANARY = """
    SELECT r.strategy, r.spec, r.stage, r.weight, r.weight_known_at, r.from_revision_id, r.to_revision_id,
           (SELECT max(t.healthy_at) FROM routes t
             WHERE t.deployment_id = r.deployment_id AND t.revision_id = r.to_revision_id), e.sums::text
      FROM rollouts r LEFT JOIN evidence e ON e.rollout_id = r.id
     WHERE r.id = %s AND r.weight IS NOT NULL
"""

_KEEP = """
    INSERT INTO evidence (rollout_id, sums) VALUES (%s, %s)
    ON CONFLICT (rollout_id) DO UPDATE SET sums = excluded.sums
"""

_POINTED = "SELECT min(at), max(at) FROM evidence_points WHERE rollout_id = %s"

_POINT = """
    INSERT INTO evidence_points
           (rollout_id, at, weight, canary, canary_failed, control, control_failed, harm, good)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING
"""


class _Canary(NamedTuple):
    strategy: str
    spec: Any
    stage: int
    weight: int
    weight_known_at: datetime | None
    from_revision_id: UUID
    to_revision_id: UUID
    youngest_at: datetime | None
    sums: str | None


def evidence_of(connection: Connection[Any], rollouts: Sequence[UUID]) -> dict[UUID, Sums]:
    """The evidence of these rollouts, by their ids; of those of which a proxy has told."""
    rows = connection.cursor(binary=True).execute(_EVIDENCE, {"ids": list(rollouts)}).fetchall()
    return {rollout_id: _SUMS.validate_json(sums) for rollout_id, sums in rows}


def fold(connection: Connection[Any], rollout_id: UUID, interval: Interval) -> None:
    canary_row = next((_Canary(*row) for row in connection.execute(_CANARY, (rollout_id,))), None)
    if canary_row is None:
        return
    judging = judging_of(stored_policy({"strategy": canary_row.strategy, "spec": canary_row.spec, "limits": {}}))
    if judging is None:
        return
    before = NOTHING_SEEN if canary_row.sums is None else _SUMS.validate_json(canary_row.sums)
    canary = CanaryState(canary_row.stage, canary_row.weight, canary_row.weight_known_at, before)
    control = rollout_id if judging.has_baseline else canary_row.from_revision_id
    sums = judging.fold_interval(canary, _evidence(canary_row, control, interval))
    connection.execute(_KEEP, (rollout_id, _SUMS.dump_json(sums).decode()))
    if judging.settings is not None and canary_row.weight:
        _keep_point(connection, rollout_id, point_of(judging.settings, sums, interval.at, canary_row.weight))


def _keep_point(connection: Connection[Any], rollout_id: UUID, point: Point) -> None:
    ((first, last),) = connection.execute(_POINTED, (rollout_id,))
    if is_due(first, last, point.at):
        connection.execute(_POINT, (rollout_id, *astuple(point)))


def _evidence(canary: _Canary, control: UUID, interval: Interval) -> Evidence:
    return Evidence(
        interval.at,
        canary=interval.of.get(canary.to_revision_id, Answers()),
        control=interval.of.get(control, Answers()),
        reporting=interval.reporting,
        live=interval.live,
        copies=interval.copies,
        old_failed=interval.of.get(canary.from_revision_id, Answers()).failed,
        youngest_at=canary.youngest_at,
        under_way=(interval.under_way.get(canary.to_revision_id, 0), interval.under_way.get(control, 0)),
    )
