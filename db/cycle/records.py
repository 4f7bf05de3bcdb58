"""What a chunk leaves on record: the rollouts' clocks and counters, their numbered steps, the timeline for people."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID, uuid4

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.cycle.claim import HistoryHead
from db.cycle.copying import copy_rows
from domain.after import back_reason_of, outcome_of, rollout_after
from domain.history import history_key
from domain.model import Rollout
from domain.recording import decision_json, inputs_json
from domain.transitions import ClassifiedDecision

_UPDATE_ROLLOUTS = """
    UPDATE rollouts r
       SET steps = u.steps, failed_routes = u.failed_routes, deadline = u.deadline,
           last_progress_at = u.last_progress_at, clock_stopped_at = u.clock_stopped_at,
           back_reason = coalesce(r.back_reason, u.back_reason), outcome = u.outcome,
           ended_at = CASE WHEN u.outcome IS NOT NULL THEN %(at)b END
      FROM unnest(%(ids)b::uuid[], %(steps)b::int[], %(failed)b::int[], %(deadlines)b::timestamptz[],
                  %(progresses)b::timestamptz[], %(clocks)b::timestamptz[], %(back_reasons)b::text[],
                  %(outcomes)b::text[])
           AS u (id, steps, failed_routes, deadline, last_progress_at, clock_stopped_at, back_reason, outcome)
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
    changed = [(decision, rollout) for decision in decisions if (rollout := _changed_rollout(decision, at))]
    if not changed:
        return
    _execute(
        connection,
        _UPDATE_ROLLOUTS,
        at=at,
        ids=[rollout.id for _, rollout in changed],
        steps=[rollout.steps for _, rollout in changed],
        failed=[rollout.failed_routes for _, rollout in changed],
        deadlines=[rollout.deadline for _, rollout in changed],
        progresses=[rollout.last_progress_at for _, rollout in changed],
        clocks=[rollout.clock_stopped_at for _, rollout in changed],
        back_reasons=[back_reason_of(decision) for decision, _ in changed],
        outcomes=[outcome_of(decision) for decision, _ in changed],
    )


def _changed_rollout(decision: ClassifiedDecision, at: datetime) -> Rollout | None:
    """The rollout as the decision leaves it; None where that is as it was."""
    before = decision.deployment.rollout
    if before is None or (not decision.changes_anything and not decision.clock_stopped and not before.clock_stopped_at):
        return None
    rollout = rollout_after(decision, at)
    return None if rollout == before else rollout


def record_steps(connection: Connection, phase: str, changing: Sequence[ClassifiedDecision], at: datetime) -> None:
    """One numbered step for each changing cycle of a rollout, with all that is needed to decide it again."""
    steps = [
        (
            rollout_id(one),
            one.deployment.rollout.steps + 1,
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


def _as_it_is(text: bytes) -> bytes:
    return text
