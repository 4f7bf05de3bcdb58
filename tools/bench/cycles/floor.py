"""The floor under a mutating cycle: a plain psycopg script that reads and writes the same rows and decides nothing.

Each chunk is one transaction, as the coordinator's is: it claims, reads routes and rollouts, creates one route and
drains the first one of each deployment, and leaves the same records. Inserts by binary COPY, updates by unnest.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

Row = tuple[Any, ...]

_CLAIM = """
    SELECT id, name, desired_replicas, lifecycle, sub_step, current_revision_id, deploying_revision_id, version,
           phase_started_at, phase_attempts, paused_at, failed_revision_id, failed_starts, last_failed_at,
           degraded_reason, retry_at, rollout_id, history_id, history_key
      FROM deployments
     WHERE due_at <= statement_timestamp() AND lifecycle = 'deploying' AND sub_step = 'provisioning'
     ORDER BY due_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
"""

_ROUTES = """
    SELECT deployment_id, id, revision_id, status, traffic_status, created_at, status_changed_at, parked_until
      FROM routes WHERE deployment_id = ANY(%b) AND status NOT IN ('terminated', 'failed') ORDER BY id
"""

_ROLLOUTS = """
    SELECT id, strategy, spec::text, limits::text, started_at, last_progress_at, deadline, failed_routes, steps,
           clock_stopped_at, promote_requested, desired_at_start
      FROM rollouts WHERE id = ANY(%b)
"""

_DRAIN = """
    UPDATE routes SET status = 'terminating', traffic_status = 'inactive', status_changed_at = %(at)b,
                      drain_started_at = %(at)b, drain_xid = pg_current_xact_id(), status_reason = 'drained'
     WHERE id = ANY(%(ids)b)
"""

_MERGE_HISTORY = """
    UPDATE deployment_history SET attempts = attempts + 1, message = %(message)b, updated_at = %(at)b
     WHERE id = ANY(%(ids)b)
"""

_DEPLOYMENTS = """
    UPDATE deployments d
       SET due_at = %(due)b, reason = %(reason)b, version = d.version + 1, history_id = u.history_id,
           history_key = u.history_key
      FROM unnest(%(ids)b::uuid[], %(versions)b::bigint[], %(history_ids)b::uuid[], %(history_keys)b::text[])
           AS u (id, version, history_id, history_key)
     WHERE d.id = u.id AND d.version = u.version
"""

_UPDATE_ROLLOUTS = """
    UPDATE rollouts SET steps = steps + 1, last_progress_at = %(at)b WHERE id = ANY(%(ids)b)
"""

_REASON = "creating 1 new (3 live + 1 ≤ 4), draining 1 (at least 2 of 3 stay)"
_KEY = "{} deploying_provisioning need_retry - deploying/provisioning"


def run_floor(connection: psycopg.Connection, chunk: int, inputs: str, decision: str) -> int:
    """Until nothing is due; returns the deployments. `inputs` and `decision`: what each step stores, as JSON text."""
    done = 0
    while found := _chunk(connection, chunk, _ready_made(inputs), _ready_made(decision)):
        done += found
    return done


def _chunk(connection: psycopg.Connection, chunk: int, inputs: Jsonb, decision: Jsonb) -> int:
    with connection.transaction(), connection.cursor(binary=True) as cursor:
        claimed = cursor.execute(_CLAIM, (chunk,)).fetchall()
        if not claimed:
            return 0
        routes = cursor.execute(_ROUTES, ([row[0] for row in claimed],)).fetchall()
        rollouts = {row[0]: row for row in cursor.execute(_ROLLOUTS, ([row[16] for row in claimed],))}
        (at,) = cursor.execute("SELECT clock_timestamp()").fetchone() or (None,)
        _write_routes(cursor, claimed, routes, at)
        heads = _write_history(cursor, claimed, at)
        _write_states(cursor, claimed, heads, at)
        steps = [(row[16], rollouts[row[16]][8] + 1, _PHASE, at, "need_retry", inputs, decision) for row in claimed]
        _copy(cursor, "rollout_steps", _STEP, steps)
    return len(claimed)


_PHASE = "deploying_provisioning"
_STEP = {
    "rollout_id": "uuid",
    "step_no": "int4",
    "phase": "text",
    "at": "timestamptz",
    "verdict": "text",
    "inputs": "jsonb",
    "decision": "jsonb",
}
_ROUTE = {
    "deployment_id": "uuid",
    "revision_id": "uuid",
    "rollout_id": "uuid",
    "traffic_status": "text",
    "created_at": "timestamptz",
    "status_changed_at": "timestamptz",
}
_HISTORY = {
    "id": "uuid",
    "deployment_id": "uuid",
    "rollout_id": "uuid",
    "phase": "text",
    "result": "text",
    "target": "text",
    "actor": "text",
    "message": "text",
    "created_at": "timestamptz",
    "updated_at": "timestamptz",
}


def _write_routes(cursor: psycopg.Cursor[Row], claimed: Sequence[Row], routes: Sequence[Row], at: datetime) -> None:
    _copy(cursor, "routes", _ROUTE, [(row[0], row[6], row[16], "active", at, at) for row in claimed])
    first = {row[0]: row[1] for row in reversed(routes)}
    cursor.execute(_DRAIN, {"ids": list(first.values()), "at": at})


def _write_history(cursor: psycopg.Cursor[Row], claimed: Sequence[Row], at: datetime) -> dict[UUID, UUID]:
    """The record that each deployment points at."""
    new = {row[0]: uuid4() for row in claimed if row[18] is None}
    repeated = {row[0]: row[17] for row in claimed if row[18] is not None}
    if new:
        phase = _PHASE
        rows = [
            (new[row[0]], row[0], row[16], phase, "need_retry", "deploying/provisioning", phase, _REASON, at, at)
            for row in claimed
            if row[18] is None
        ]
        _copy(cursor, "deployment_history", _HISTORY, rows)
    if repeated:
        cursor.execute(_MERGE_HISTORY, {"ids": list(repeated.values()), "message": _REASON, "at": at})
    return {**new, **repeated}


def _write_states(cursor: psycopg.Cursor[Row], claimed: Sequence[Row], heads: dict[UUID, UUID], at: datetime) -> None:
    cursor.execute(
        _DEPLOYMENTS,
        {
            "due": at + timedelta(days=1),
            "reason": _REASON,
            "ids": [row[0] for row in claimed],
            "versions": [row[7] for row in claimed],
            "history_ids": [heads[row[0]] for row in claimed],
            "history_keys": [_KEY.format(row[16]) for row in claimed],
        },
    )
    cursor.execute(_UPDATE_ROLLOUTS, {"ids": [row[16] for row in claimed], "at": at})


def _copy(cursor: psycopg.Cursor[Row], table: str, columns: dict[str, str], rows: Iterable[Row]) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    query = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table), names)
    with cursor.copy(query) as copy:
        copy.set_types(list(columns.values()))
        for row in rows:
            copy.write_row(row)


def _ready_made(text: str) -> Jsonb:
    return Jsonb(text, dumps=str)
