"""What a chunk leaves on record: the rollouts' clocks and counters, their numbered steps, the timeline for people."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from db.deployments import HistoryHead
from db.engine import driver
from domain.history import history_key, merges
from domain.model import DeploymentSubStep, RolloutOutcome
from domain.replay import decision_json, inputs_json
from domain.transitions import ClassifiedDecision, RevisionMove, clock_stood_still

_UPDATE_ROLLOUTS = """
    UPDATE rollouts r
       SET steps = u.steps, back_reason = coalesce(r.back_reason, u.back_reason),
           deadline = r.deadline + u.stood_still, last_progress_at = CASE WHEN u.progress THEN %(at)s
                                                                     ELSE r.last_progress_at + u.stood_still END,
           clock_stopped_at = u.clock_stopped_at, outcome = u.outcome,
           ended_at = CASE WHEN u.outcome IS NOT NULL THEN %(at)s END
      FROM unnest(%(ids)s::uuid[], %(steps)s::int[], %(back_reasons)s::text[], %(stood_stills)s::interval[],
                  %(progresses)s::bool[], %(clocks)s::timestamptz[], %(outcomes)s::text[])
           AS u (id, steps, back_reason, stood_still, progress, clock_stopped_at, outcome)
     WHERE r.id = u.id
"""

_INSERT_STEPS = """
    INSERT INTO rollout_steps (rollout_id, step_no, phase, at, verdict, inputs, decision)
    SELECT u.rollout_id, u.step_no, %(phase)s, %(at)s, u.verdict, u.inputs, u.decision
      FROM unnest(%(ids)s::uuid[], %(steps)s::int[], %(verdicts)s::text[], %(inputs)s::jsonb[], %(decisions)s::jsonb[])
           AS u (rollout_id, step_no, verdict, inputs, decision)
"""

_INSERT_HISTORY = """
    INSERT INTO deployment_history
           (id, endpoint_id, rollout_id, phase, result, error_code, target, actor, message, created_at, updated_at)
    SELECT u.id, u.endpoint_id, u.rollout_id, %(phase)s, u.result, u.error_code, u.target, %(phase)s, u.message,
           %(at)s, %(at)s
      FROM unnest(%(ids)s::uuid[], %(endpoint_ids)s::uuid[], %(rollout_ids)s::uuid[], %(results)s::text[],
                  %(error_codes)s::text[], %(targets)s::text[], %(messages)s::text[])
           AS u (id, endpoint_id, rollout_id, result, error_code, target, message)
"""

_MERGE_HISTORY = """
    UPDATE deployment_history h SET attempts = h.attempts + 1, message = u.message, updated_at = %(at)s
      FROM unnest(%(ids)s::uuid[], %(messages)s::text[]) AS u (id, message)
     WHERE h.id = u.id
"""


def record_rollouts(connection: Connection, decisions: Sequence[ClassifiedDecision], at: datetime) -> None:
    """Clocks, counters, direction and outcome of the rollouts that these decisions belong to."""
    decisions = [one for one in decisions if one.deployment.rollout]
    if not decisions:
        return
    _execute(
        connection,
        _UPDATE_ROLLOUTS,
        at=at,
        ids=[rollout_id(one) for one in decisions],
        steps=[_steps_after(one) for one in decisions],
        back_reasons=[_back_reason(one) for one in decisions],
        stood_stills=[timedelta() if one.clock_stopped else clock_stood_still(one.deployment, at) for one in decisions],
        progresses=[_old_ones_leave(one) for one in decisions],
        clocks=[_clock(one, at) for one in decisions],
        outcomes=[_outcome(one) for one in decisions],
    )


def record_steps(connection: Connection, phase: str, changing: Sequence[ClassifiedDecision], at: datetime) -> None:
    """One numbered step for each changing cycle of a rollout, with all that is needed to decide it again."""
    decisions = [one for one in changing if one.deployment.rollout]
    if not decisions:
        return
    _execute(
        connection,
        _INSERT_STEPS,
        at=at,
        phase=phase,
        ids=[rollout_id(one) for one in decisions],
        steps=[_steps_after(one) for one in decisions],
        verdicts=[one.verdict.value for one in decisions],
        inputs=[Jsonb(inputs_json(one.deployment, at)) for one in decisions],
        decisions=[Jsonb(decision_json(one)) for one in decisions],
    )


def record_history(
    connection: Connection,
    phase: str,
    changing: Sequence[ClassifiedDecision],
    heads: Mapping[UUID, HistoryHead],
    at: datetime,
) -> dict[UUID, HistoryHead]:
    """A record for people, or one more attempt on the last one; returns the heads that are new."""
    keyed = [(one, history_key(phase, one)) for one in changing]
    repeated = [(one, key) for one, key in keyed if merges(heads[one.deployment.id].key, key)]
    new = [(one, key, uuid4()) for one, key in keyed if not merges(heads[one.deployment.id].key, key)]
    if repeated:
        _execute(
            connection,
            _MERGE_HISTORY,
            at=at,
            ids=[heads[one.deployment.id].id for one, _ in repeated],
            messages=[one.reason for one, _ in repeated],
        )
    if new:
        _execute(
            connection,
            _INSERT_HISTORY,
            at=at,
            phase=phase,
            ids=[record_id for _, _, record_id in new],
            endpoint_ids=[one.deployment.id for one, _, _ in new],
            rollout_ids=[key.rollout_id for _, key, _ in new],
            results=[key.result.value for _, key, _ in new],
            error_codes=[key.error_code for _, key, _ in new],
            targets=[str(key.target) for _, key, _ in new],
            messages=[one.reason for one, _, _ in new],
        )
    return {one.deployment.id: HistoryHead(record_id, str(key)) for one, key, record_id in new}


def _execute(connection: Connection, query: str, **parameters: object) -> None:
    driver(connection).execute(query, parameters)


def rollout_id(one: ClassifiedDecision) -> UUID | None:
    """Of the rollout that the decision belongs to, if any."""
    return one.deployment.rollout.id if one.deployment.rollout else None


def _steps_after(one: ClassifiedDecision) -> int:
    steps = one.deployment.rollout.steps if one.deployment.rollout else 0
    return steps + int(one.changes_anything)


def _old_ones_leave(one: ClassifiedDecision) -> bool:
    """Progress is an old route that goes; a new one that is replaced is none."""
    old = {route.id for route in one.deployment.routes if route.revision_id != one.deployment.deploying_revision_id}
    return not old.isdisjoint(one.changes.drain_route_ids)


def _back_reason(one: ClassifiedDecision) -> str | None:
    turned = one.to.sub_step is DeploymentSubStep.ROLLING_BACK and one.to != one.deployment.status
    return one.reason if turned else None


def _clock(one: ClassifiedDecision, at: datetime) -> datetime | None:
    if not one.clock_stopped or one.deployment.rollout is None:
        return None
    return one.deployment.rollout.clock_stopped_at or at


def _outcome(one: ClassifiedDecision) -> str | None:
    match one.revision:
        case RevisionMove.SWAP:
            return RolloutOutcome.COMPLETED.value
        case RevisionMove.CLEAR:
            return RolloutOutcome.ROLLED_BACK.value
        case RevisionMove.KEEP:
            return None
