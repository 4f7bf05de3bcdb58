"""What a chunk leaves on record: the rollouts' clocks and counters, their numbered steps, the timeline for people."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import LiteralString
from uuid import UUID, uuid4

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.cycle.claim import HistoryHead
from db.cycle.copying import copy_rows
from domain.history import history_key
from domain.model import DeploymentSubStep, RolloutOutcome
from domain.replay import decision_json, inputs_json
from domain.transitions import ClassifiedDecision, RevisionMove, clock_stood_still

_UPDATE_ROLLOUTS = """
    UPDATE rollouts r
       SET steps = u.steps, back_reason = coalesce(r.back_reason, u.back_reason),
           deadline = r.deadline + u.stood_still, last_progress_at = CASE WHEN u.progress THEN %(at)b
                                                                     ELSE r.last_progress_at + u.stood_still END,
           clock_stopped_at = u.clock_stopped_at, outcome = u.outcome,
           ended_at = CASE WHEN u.outcome IS NOT NULL THEN %(at)b END
      FROM unnest(%(ids)b::uuid[], %(steps)b::int[], %(back_reasons)b::text[], %(stood_stills)b::interval[],
                  %(progresses)b::bool[], %(clocks)b::timestamptz[], %(outcomes)b::text[])
           AS u (id, steps, back_reason, stood_still, progress, clock_stopped_at, outcome)
     WHERE r.id = u.id
"""

_STEP: Mapping[LiteralString, LiteralString] = {
    "rollout_id": "uuid",
    "step_no": "int4",
    "phase": "text",
    "at": "timestamptz",
    "verdict": "text",
    "inputs": "jsonb",
    "decision": "jsonb",
}

_HISTORY: Mapping[LiteralString, LiteralString] = {
    "id": "uuid",
    "deployment_id": "uuid",
    "rollout_id": "uuid",
    "phase": "text",
    "result": "text",
    "error_code": "text",
    "target": "text",
    "actor": "text",
    "message": "text",
    "created_at": "timestamptz",
    "updated_at": "timestamptz",
}

_MERGE_HISTORY = """
    UPDATE deployment_history h SET attempts = h.attempts + 1, message = u.message, updated_at = %(at)b
      FROM unnest(%(ids)b::uuid[], %(messages)b::text[]) AS u (id, message)
     WHERE h.id = u.id
"""


def record_rollouts(connection: Connection, decisions: Sequence[ClassifiedDecision], at: datetime) -> None:
    """Clocks, counters, direction and outcome of the rollouts that these decisions belong to."""
    decisions = [one for one in decisions if one.deployment.rollout and (one.changes_anything or _clock_turns(one))]
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
    steps = [
        (
            rollout_id(one),
            _steps_after(one),
            phase,
            at,
            one.verdict.value,
            Jsonb(inputs_json(one.deployment, at), _as_it_is),
            Jsonb(decision_json(one), _as_it_is),
        )
        for one in changing
        if one.deployment.rollout
    ]
    if steps:
        copy_rows(connection, "rollout_steps", _STEP, steps)


def record_history(
    connection: Connection,
    phase: str,
    changing: Sequence[ClassifiedDecision],
    heads: Mapping[UUID, HistoryHead],
    at: datetime,
) -> list[HistoryHead]:
    """A record for people, or one more attempt on the last one; returns the last record of each, in their order."""
    repeated, new, last = [], [], []
    for one in changing:
        key, head = history_key(phase, one), heads[one.deployment.id]
        if (text := str(key)) == head.key:
            repeated.append((head.id, one.reason))
        else:
            head = HistoryHead(uuid4(), text)
            what = (key.rollout_id, phase, key.result.value, key.error_code, str(key.target))
            new.append((head.id, one.deployment.id, *what, phase, one.reason, at, at))
        last.append(head)
    if repeated:
        ids, messages = zip(*repeated, strict=True)
        _execute(connection, _MERGE_HISTORY, at=at, ids=list(ids), messages=list(messages))
    if new:
        copy_rows(connection, "deployment_history", _HISTORY, new)
    return last


def _execute(connection: Connection, query: str, **parameters: object) -> None:
    connection.execute(query, parameters)


def rollout_id(one: ClassifiedDecision) -> UUID | None:
    """Of the rollout that the decision belongs to, if any."""
    return one.deployment.rollout.id if one.deployment.rollout else None


def _steps_after(one: ClassifiedDecision) -> int:
    steps = one.deployment.rollout.steps if one.deployment.rollout else 0
    return steps + int(one.changes_anything)


def _old_ones_leave(one: ClassifiedDecision) -> bool:
    """Progress is an old route that goes; a new one that is replaced is none."""
    drained = set(one.changes.drain_route_ids)
    new = one.deployment.deploying_revision_id
    return bool(drained) and any(route.id in drained and route.revision_id != new for route in one.deployment.routes)


def _back_reason(one: ClassifiedDecision) -> str | None:
    turned = one.to.sub_step is DeploymentSubStep.ROLLING_BACK and one.to != one.deployment.status
    return one.reason if turned else None


def _clock(one: ClassifiedDecision, at: datetime) -> datetime | None:
    if not one.clock_stopped or one.deployment.rollout is None:
        return None
    return one.deployment.rollout.clock_stopped_at or at


def _clock_turns(one: ClassifiedDecision) -> bool:
    """It stops, or goes on."""
    rollout = one.deployment.rollout
    return rollout is not None and one.clock_stopped is (rollout.clock_stopped_at is None)


def _as_it_is(text: bytes) -> bytes:
    return text


def _outcome(one: ClassifiedDecision) -> str | None:
    match one.revision:
        case RevisionMove.SWAP:
            return RolloutOutcome.COMPLETED.value
        case RevisionMove.CLEAR:
            return RolloutOutcome.ROLLED_BACK.value
        case RevisionMove.KEEP:
            return None
