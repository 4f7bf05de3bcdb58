"""Receipts of rollouts: made from the rows, sealed once a rollout has ended, read again."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, dict_row

from db.proxies.recorded_answers import intervals_of
from db.views.planning_views import learned_of
from db.views.timeline import steps_of
from domain.planning.plan_input import Subject
from domain.planning.recorded_rollout import RecordedAct, RecordedStep, deviations
from domain.planning.replica_timings import Span, Timings
from domain.planning.rollout_plan import Plan, PlannedWave, plan
from domain.planning.sealed_receipt import NOT_MEASURED, RecordedRollout, Sealed, receipt, request_summary, seal_receipt
from domain.text.errors import RolloutNotFoundError

KEPT = 1000
"""The number of receipts that are kept of each deployment, the newest ones."""

_ROLLOUT = """
    SELECT o.id::text, o.from_revision_id, o.to_revision_id, d.name AS deployment,
           f.name AS from_revision, t.name AS to_revision,
           jsonb_build_object('strategy', o.strategy, 'spec', o.spec, 'limits', o.limits) AS policy,
           o.ceiling, o.floor, o.count_stopping, o.actor, o.reason, o.started_at, o.ended_at, o.outcome, o.back_reason,
           o.failed_routes
      FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
      JOIN revisions f ON f.id = o.from_revision_id JOIN revisions t ON t.id = o.to_revision_id
     WHERE o.id = %s
"""

_BEGUN = """
    SELECT o.deployment_id, o.started_at, jsonb_build_object(o.from_revision_id, f.name, o.to_revision_id, t.name)
      FROM rollouts o JOIN revisions f ON f.id = o.from_revision_id JOIN revisions t ON t.id = o.to_revision_id
     WHERE o.id = %s
"""

_ACTS = """
    SELECT created_at AS at, actor, phase AS what, message AS said FROM deployment_history
     WHERE rollout_id = %s AND result = 'asked'
     ORDER BY created_at, id
"""

_UNSEALED = """
    SELECT o.deployment_id, o.id FROM rollouts o
     WHERE o.outcome IS NOT NULL AND NOT o.is_sealed
       AND (o.ended_at, o.id) > (coalesce((SELECT ended_at FROM rollouts WHERE id = %(after)s), '-infinity'), %(after)s)
     ORDER BY o.ended_at, o.id
     LIMIT %(limit)s
"""

_LAST = "SELECT number, text, sha256 FROM receipts WHERE deployment_id = %s ORDER BY number DESC LIMIT 1"

_BEFORE = """
    SELECT before.number, before.text, before.sha256
      FROM receipts r JOIN receipts before ON before.deployment_id = r.deployment_id AND before.number = r.number - 1
     WHERE r.rollout_id = %s
"""

_OF_ROLLOUT = "SELECT number, text, sha256 FROM receipts WHERE rollout_id = %s"

# another worker was first: it has sealed this one, or taken the number, and the next pass takes the next number
_SEAL = """
    WITH kept AS (
        INSERT INTO receipts (rollout_id, deployment_id, number, text, sha256) VALUES (%s, %s, %s, %s, %s)
        ON CONFLICT DO NOTHING RETURNING rollout_id),
         sealed AS (
        UPDATE rollouts o SET is_sealed = true FROM kept WHERE o.id = kept.rollout_id
        RETURNING count_ended(o) AS counts)
    INSERT INTO rollout_counts AS known SELECT (counts).* FROM sealed
        ON CONFLICT (strategy, outcome, bucket) DO UPDATE
       SET count = known.count + excluded.count, seconds = known.seconds + excluded.seconds
"""

_FORGET = "DELETE FROM receipts WHERE deployment_id = %s AND number <= %s"


@dataclass(frozen=True, slots=True)
class AgainstPlan:
    """A rollout compared with the plan that could be made when it began: its waves, its end, and its deviations.

    No waves: it has taken no step yet, so there is nothing to compare. `seconds`: None where no rollout came before.
    `requests`: a sentence about the answers that callers got so far, as proxies reported them.
    """

    waves: tuple[PlannedWave, ...] = ()
    seconds: Span | None = None
    is_certain: bool = True
    deviations: tuple[str, ...] = ()
    requests: str = NOT_MEASURED


def unsealed(connection: Connection[Any], limit: int, after: UUID | None = None) -> list[tuple[UUID, UUID]]:
    """The deployments and rollouts that ended without a receipt, in the order in which they ended.

    `after`: only those that ended after this rollout; all of them where its rows are cut.
    """
    return connection.execute(_UNSEALED, {"limit": limit, "after": after or UUID(int=0)}).fetchall()


def seal(connection: Connection[Any], deployment_id: UUID, rollout_id: UUID) -> Sealed | None:
    """Make the receipt of a rollout that has ended, with the hash of the last one of its deployment.

    None where somebody else has sealed it, or has taken its number.
    """
    receipt = seal_receipt(made_from_rows(connection, rollout_id), _receipt_by(connection, _LAST, deployment_id))
    cursor = connection.execute(_SEAL, (rollout_id, deployment_id, receipt.number, receipt.text, receipt.sha256))
    connection.execute(_FORGET, (deployment_id, receipt.number - KEPT))
    return receipt if cursor.rowcount else None


def made_from_rows(connection: Connection[Any], rollout_id: UUID) -> dict[str, Any]:
    """The receipt of a rollout, under way or ended. Raises RolloutNotFoundError."""
    rows = connection.cursor(row_factory=dict_row).execute(_ROLLOUT, (rollout_id,)).fetchall()
    if not rows:
        message = f"there is no rollout {rollout_id}; 'rollway receipt DEPLOYMENT' shows the last one of a deployment"
        raise RolloutNotFoundError(message, rollout_id=rollout_id)
    (row,), steps, acts = rows, _steps(connection, rollout_id), _acts(connection, rollout_id)
    names = {row.pop(f"{end}_revision_id"): row[f"{end}_revision"] for end in ("from", "to")}
    during = [
        requests
        for requests in intervals_of(connection, rollout_id)
        if not row["ended_at"] or requests.at <= row["ended_at"]
    ]
    requests = request_summary(during, names)
    return receipt(RecordedRollout(**row, steps=steps, acts=acts, requests=requests))


def deviations_of(connection: Connection[Any], rollout_id: UUID) -> list[str]:
    """The deviations of a rollout, under way or ended, from its plan; none once its rows are cut."""
    comparison, _ = _compared(connection, rollout_id)
    return list(comparison.deviations)


def against_plan(connection: Connection[Any], rollout_id: UUID) -> AgainstPlan:
    """A rollout, under way or ended, next to its plan; nothing when its rows are cut."""
    comparison, names = _compared(connection, rollout_id)
    return replace(comparison, requests=request_summary(intervals_of(connection, rollout_id), names)["said"])


def sealed_receipt(connection: Connection[Any], rollout_id: UUID) -> Sealed | None:
    """The sealed receipt, kept also when the rollout's rows are cut; None before it is sealed."""
    return _receipt_by(connection, _OF_ROLLOUT, rollout_id)


def receipt_before(connection: Connection[Any], rollout_id: UUID) -> Sealed | None:
    """The receipt whose hash this rollout's receipt contains; None where there is none, or it is no longer kept."""
    return _receipt_by(connection, _BEFORE, rollout_id)


def _compared(connection: Connection[Any], rollout_id: UUID) -> tuple[AgainstPlan, dict[UUID, str]]:
    """A rollout compared with its plan, without the answers that callers got, and the names of its revisions."""
    row = connection.execute(_BEGUN, (rollout_id,)).fetchone()
    if row is None:
        return AgainstPlan(), {}
    deployment_id, began, names = row
    comparison = _against_plan(connection, deployment_id, began, _steps(connection, rollout_id))
    return comparison, {UUID(revision): name for revision, name in names.items()}


def _against_plan(
    connection: Connection[Any], deployment_id: UUID, began: datetime, steps: Sequence[RecordedStep]
) -> AgainstPlan:
    """Each time the same plan is drawn for a rollout."""
    if not steps:
        return AgainstPlan()
    timings = learned_of(connection, deployment_id, began)
    plan = _planned(Subject(steps[0].deployment), steps[0].at, timings, str(began))
    return AgainstPlan(plan.waves, plan.seconds, plan.is_certain, tuple(deviations(plan, steps)))


@lru_cache(maxsize=64)
def _planned(subject: Subject, at: datetime, timings: Timings, seed: str) -> Plan:
    """A rollout that is shown again and again is planned once."""
    return plan(subject, at, timings, random.Random(seed).random)  # noqa: S311  (nobody is to be kept out)


def _steps(connection: Connection[Any], rollout_id: UUID) -> list[RecordedStep]:
    steps = steps_of(connection, rollout_id)
    return [RecordedStep.of(step.step_no, step.phase, step.at, step.inputs, step.decision) for step in steps]


def _acts(connection: Connection[Any], rollout_id: UUID) -> list[RecordedAct]:
    return connection.cursor(row_factory=class_row(RecordedAct)).execute(_ACTS, (rollout_id,)).fetchall()


def _receipt_by(connection: Connection[Any], query: LiteralString, *parameters: object) -> Sealed | None:
    return next(iter(connection.cursor(row_factory=class_row(Sealed)).execute(query, parameters).fetchall()), None)
