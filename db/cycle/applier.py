"""Writes the next snapshots of a chunk into rows, in bulk, in the transaction of the claim: `apply` lists them."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Self
from uuid import UUID, uuid4

from psycopg import Connection, Cursor

from db.connection.arrays import UUIDS, Columns, columns, named_row
from db.devices import as_json
from db.locking.statuses import ACTIVE
from db.outbox import write_events
from domain.cycle.step_deltas import KeptStep
from domain.cycle.writes import ChunkWrites, HistoryHead
from domain.model.canary import CanaryState
from domain.model.deployment import Deployment, Rollout
from domain.outbox.cloud_events import CloudEvent

# the seat that was left last is given first, a new seat last; a route that left keeps its seat until it is given
_GIVE = """
    WITH present AS (
        SELECT r.id, r.deployment_id, r.seat, r.traffic_status = 'active' AS serves, r.status = 'healthy' AS is_healthy,
               coalesce(r.revision_id = d.deploying_revision_id AND o.weight IS NOT NULL, false) AS is_canary,
               d.desired_replicas, r.status_changed_at
          FROM deployments d JOIN routes r ON r.deployment_id = d.id LEFT JOIN rollouts o ON o.id = d.rollout_id
         WHERE d.id = ANY(%(ids)b) AND d.has_seats AND (r.traffic_status = 'active' OR r.seat IS NOT NULL)),
    sides AS (
        SELECT deployment_id, is_canary, max(desired_replicas) AS wanted,
               count(seat) FILTER (WHERE serves) AS taken
          FROM present GROUP BY deployment_id, is_canary),
    offered AS (
        SELECT deployment_id, is_canary, seat, status_changed_at AS left_at FROM present WHERE NOT serves
        UNION ALL
        SELECT deployment_id, is_canary, generate_series(0, wanted - 1), '-infinity' FROM sides),
    free AS (
        SELECT deployment_id, is_canary, seat,
               row_number() OVER (PARTITION BY deployment_id, is_canary ORDER BY max(left_at) DESC, seat) AS turn
          FROM offered LEFT JOIN (SELECT deployment_id, is_canary, seat, true AS is_taken FROM present WHERE serves) p
                              USING (deployment_id, is_canary, seat)
         WHERE is_taken IS NULL GROUP BY deployment_id, is_canary, seat),
    waiting AS (
        SELECT deployment_id, is_canary, id,
               row_number() OVER (PARTITION BY deployment_id, is_canary ORDER BY is_healthy DESC, id) AS turn
          FROM present WHERE serves AND seat IS NULL),
    given AS (
        SELECT id, seat, deployment_id, is_canary
          FROM waiting JOIN sides USING (deployment_id, is_canary) JOIN free USING (deployment_id, is_canary, turn)
         WHERE turn <= wanted - taken)
    UPDATE routes r SET seat = becomes.seat
      FROM (SELECT id, seat FROM given
            UNION ALL
            SELECT gone.id, NULL
              FROM present gone JOIN (SELECT deployment_id, is_canary, seat FROM given
                                      UNION ALL
                                      SELECT deployment_id, is_canary, seat FROM present WHERE serves) taken
                             USING (deployment_id, is_canary, seat)
             WHERE NOT gone.serves) becomes
     WHERE r.id = becomes.id
"""


def give_seats(connection: Connection, ids: Collection[UUID]) -> None:
    """Give the free seats of these deployments, which are locked, to replicas in traffic that have none.

    Sticky callers find a replica by its seat; a new replica takes the seat of one that has left:

        0 1 2 | 3 waits        three wanted; a new replica has come and has no seat while all are taken
        0   2 | 3              the old one of seat 1 leaves
        0 3 2                  in the same transaction its callers become the new one's, and nobody else moves

    Proxies tell the two sides of a canary apart, so each side has its own seats. Healthy replicas get one first, then
    older ones. Where callers are not sticky there are no seats.
    """
    if ids:
        connection.execute(_GIVE, {"ids": list(ids)})


_CREATED = columns("""
    deployment_id uuid, revision_id uuid, rollout_id uuid, traffic_status text, created_at timestamptz,
    status_changed_at timestamptz, host text, devices jsonb
""")

_PROMOTE_ROUTES = "UPDATE routes SET traffic_status = 'active', parked_until = NULL WHERE id = ANY(%(ids)b)"

_PARKED = columns("id uuid, until timestamptz")

_PARK_ROUTES = f"""
    UPDATE routes r
       SET traffic_status = 'inactive', parked_until = u.until, parked_at = %(at)b,
           park_xid = pg_current_xact_id(), let_go_at = NULL
      FROM {_PARKED} WHERE r.id = u.id
"""

_DRAIN_ROUTES = f"""
    UPDATE routes
       SET status = 'terminating', traffic_status = 'inactive', status_changed_at = %(at)b, drain_started_at = %(at)b,
           drain_xid = pg_current_xact_id(), status_reason = 'drained'
     WHERE id = ANY(%(ids)b) AND {ACTIVE}
    RETURNING host
"""


@dataclass(frozen=True, slots=True)
class StrategyApplyResult:
    """The routes that a chunk created, brought into traffic and drained.

    `starting` and `stopping`: the hosts of those created and drained; `unplaced`: how many new ones have none yet.
    """

    created: int = 0
    promoted: int = 0
    drained: int = 0
    unplaced: int = 0
    starting: frozenset[str] = frozenset()
    stopping: frozenset[str] = frozenset()

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.created + other.created,
            self.promoted + other.promoted,
            self.drained + other.drained,
            self.unplaced + other.unplaced,
            self.starting | other.starting,
            self.stopping | other.stopping,
        )


DEPLOYMENT = columns("""
    id uuid, lifecycle text, sub_step text, desired_replicas int4, current_revision_id uuid, deploying_revision_id uuid,
    rollout_id uuid, phase_started_at timestamptz, phase_attempts int4, paused_at timestamptz,
    degraded_reason text, retry_at timestamptz, last_autoscaled_at timestamptz
""")
_CLOCKS = columns("""
    id uuid, last_progress_at timestamptz, deadline timestamptz, clock_stopped_at timestamptz, failed_routes int4,
    steps int4, promote_requested bool
""")
_SIZES = columns("desired_at_start int4, desired_with_revision int4")
_CANARY = columns("stage int4, weight int4, weight_known_at timestamptz")
COUNTED = _CLOCKS + _CANARY
"""The columns of a rollout that cycles change."""
ROLLOUT = _CLOCKS + _SIZES + _CANARY
_clocks: Callable[[Rollout], tuple[object, ...]] = attrgetter(*_CLOCKS.types)
_sizes: Callable[[Rollout], tuple[object, ...]] = attrgetter(*_SIZES.types)
_canary: Callable[[CanaryState], tuple[object, ...]] = attrgetter(*_CANARY.types)
_NO_CANARY = CanaryState(weight=None)


def counted_values(rollout: Rollout) -> tuple[object, ...]:
    """The values of COUNTED, in its order."""
    return _clocks(rollout) + _canary(rollout.canary or _NO_CANARY)


def rollout_values(rollout: Rollout) -> tuple[object, ...]:
    """The values of ROLLOUT, in its order."""
    return _clocks(rollout) + _sizes(rollout) + _canary(rollout.canary or _NO_CANARY)


def deployment_values(deployment: Deployment) -> tuple[object, ...]:
    """The values of DEPLOYMENT, in its order."""
    return (
        deployment.id,
        deployment.status.lifecycle,
        deployment.status.sub_step,
        deployment.desired_replicas,
        deployment.current_revision_id,
        deployment.deploying_revision_id,
        deployment.rollout.id if deployment.rollout else None,
        deployment.phase_started_at,
        deployment.phase_attempts,
        deployment.paused_at,
        deployment.degraded_reason,
        deployment.retry_at,
        deployment.autoscaling.last_at,
    )


def assigned(row: Columns) -> str:
    """The columns except the id, for a SET: "lifecycle = u.lifecycle, ..."."""
    return ", ".join(f"{name} = {row.alias}.{name}" for name in row.types if name != "id")


_DECIDED = COUNTED + columns("back_reason text, outcome text")

_UPDATE_ROLLOUTS = f"""
    UPDATE rollouts r
       SET {assigned(COUNTED)},
           back_reason = coalesce(r.back_reason, u.back_reason), outcome = u.outcome,
           ended_at = CASE WHEN u.outcome IS NOT NULL THEN %(at)b END
      FROM {_DECIDED} WHERE r.id = u.id
"""

_HISTORY = columns("""
    id uuid, deployment_id uuid, rollout_id uuid, phase text, result text, error_code text, target text, actor text,
    message text, created_at timestamptz, updated_at timestamptz
""")

_REPEATED = columns("id uuid, message text")

_MERGE_HISTORY = f"""
    UPDATE deployment_history h SET attempts = h.attempts + 1, message = u.message, updated_at = %(at)b
      FROM {_REPEATED} WHERE h.id = u.id
"""


_STEP = columns("""
    rollout_id uuid, step_no int4, phase text, at timestamptz, verdict text, inputs jsonb, decision jsonb,
    whole_step int4
""")

_LAST = columns("rollout_id uuid, step_no int4")

_KEPT = f"""
    SELECT s.rollout_id, s.step_no AS number, s.inputs, coalesce(s.whole_step, s.step_no) AS whole_step
      FROM {_LAST}
      JOIN rollout_steps last USING (rollout_id, step_no)
      JOIN rollout_steps s ON s.rollout_id = last.rollout_id
       AND s.step_no BETWEEN coalesce(last.whole_step, last.step_no) AND last.step_no
     ORDER BY s.rollout_id, s.step_no
"""


def kept_steps(connection: Connection, last: Sequence[tuple[UUID, int]]) -> list[KeptStep]:
    """The last step of each of these rollouts, after the steps that it builds on."""
    if not last:
        return []
    return connection.cursor(row_factory=named_row(KeptStep)).execute(_KEPT, _LAST.arrays(last)).fetchall()


_WAITING = columns("id uuid, version int8, due_at timestamptz, reason text, waits_for text")

_WAIT = f"""
    UPDATE deployments d SET due_at = u.due_at, reason = u.reason, waits_for = u.waits_for, phase_attempts = 0
      FROM {_WAITING} WHERE d.id = u.id AND d.version = u.version
"""

_SHOWN = columns("version int8, due_at timestamptz, reason text, waits_for text, history_id uuid, history_key text")
"""The columns that every change writes: the next version, the next look, and the reason for people."""

_MADE = columns("id uuid, phase_attempts int4") + _SHOWN

_MOVE = DEPLOYMENT + _SHOWN

_TAKE_STEP = f"UPDATE deployments d SET {assigned(_MADE)} FROM {_MADE} WHERE d.id = u.id AND d.version = u.version - 1"

_MAKE_MOVE = f"UPDATE deployments d SET {assigned(_MOVE)} FROM {_MOVE} WHERE d.id = u.id AND d.version = u.version - 1"


class StaleSnapshotError(Exception):
    """A deployment changed between the read and the write although it was locked; nothing of the chunk is kept."""


def apply(connection: Connection, writes: ChunkWrites, events: Sequence[CloudEvent] = ()) -> StrategyApplyResult:
    """Write a chunk. Raises StaleSnapshotError when a version is not as it was read; waits for Postgres at its end.

    Routes come before deployments, and promotions before drains, since triggers check the budget each time: the
    deployment must still be deploying, and its new replicas in traffic, when old ones are drained.
    """
    at, hosts = writes.at, [placement.host for _, placement in writes.placed]
    _add(connection, "routes", _CREATED, _created_rows(writes))
    if writes.promoted:
        connection.execute(_PROMOTE_ROUTES, {"ids": UUIDS(writes.promoted)})
    _update(connection, _PARK_ROUTES, _PARKED, writes.parked, at=at)
    drains = connection.execute(_DRAIN_ROUTES, {"ids": UUIDS(writes.drained), "at": at}) if writes.drained else None
    steps, moves = _deployment_rows(writes, _write_history(connection, writes))
    cursors = [
        _update(connection, _TAKE_STEP, _MADE, steps),
        _update(connection, _MAKE_MOVE, _MOVE, moves),
        _update(connection, _WAIT, _WAITING, writes.waits),
    ]
    _update(connection, _UPDATE_ROLLOUTS, _DECIDED, _rollout_rows(writes), at=at)
    give_seats(connection, writes.seated)
    _add(connection, "rollout_steps", _STEP, _step_rows(writes))
    write_events(connection, events)
    _check_versions(cursors, len(steps) + len(moves) + len(writes.waits))
    return StrategyApplyResult(
        created=len(hosts),
        promoted=len(writes.promoted),
        drained=len(writes.drained),
        unplaced=hosts.count(None),
        starting=frozenset(host for host in hosts if host),
        stopping=frozenset(host for (host,) in drains.fetchall() if host) if drains else frozenset(),
    )


def _add(connection: Connection, table: str, row: Columns, rows: Sequence[Sequence[object]]) -> None:
    if rows:
        row.add(connection, table, rows)


def _update(
    connection: Connection, query: str, row: Columns, rows: Sequence[Sequence[object]], **others: object
) -> Cursor[Any] | None:
    """Send the statement unless there are no rows. Postgres works on it while Python makes the next one."""
    return connection.execute(query, row.arrays(rows, **others)) if rows else None


def _check_versions(cursors: Iterable[Cursor[Any] | None], expected: int) -> None:
    stale = expected - sum(cursor.rowcount for cursor in cursors if cursor)
    if stale:
        raise StaleSnapshotError(f"{stale} of {expected} deployments changed while they were locked")


def _created_rows(writes: ChunkWrites) -> list[tuple[object, ...]]:
    at = writes.at
    return [
        (new.deployment_id, new.revision_id, new.rollout_id, new.traffic, at, at, host, devices and as_json(devices))
        for new, (host, devices, _) in writes.placed
    ]


def _write_history(connection: Connection, writes: ChunkWrites) -> list[HistoryHead]:
    """Write a record for people, or count an attempt on the last one. Returns the last record of each change."""
    repeated: list[tuple[object, ...]] = []
    new: list[tuple[object, ...]] = []
    last, at, phase = [], writes.at, writes.phase
    for effect, head in writes.changes:
        key, decision = effect.key, effect.decision
        if effect.remembered_as == head.key:
            repeated.append((head.id, decision.reason))
            last.append(head)
        elif key:
            last.append(HistoryHead(uuid4(), effect.remembered_as))
            merged_by = (key.rollout_id, phase, key.result.value, key.error_code, key.target)
            new.append((last[-1].id, decision.deployment.id, *merged_by, phase, decision.reason, at, at))
    _update(connection, _MERGE_HISTORY, _REPEATED, repeated, at=at)
    _add(connection, "deployment_history", _HISTORY, new)
    return last


def _deployment_rows(
    writes: ChunkWrites, heads: Iterable[HistoryHead]
) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """Few columns for each decision that only moves routes, as most do, and all columns for the others."""
    steps: list[tuple[object, ...]] = []
    moves: list[tuple[object, ...]] = []
    for (effect, _), head in zip(writes.changes, heads, strict=True):
        decision = effect.decision
        status = (decision.due_at, decision.reason, effect.waits_for)
        every = (decision.deployment.version + 1, *status, head.id, head.key)
        if effect.deployment is None:
            steps.append((decision.deployment.id, decision.attempts, *every))
        else:
            moves.append((*deployment_values(effect.deployment), *every))
    return steps, moves


def _rollout_rows(writes: ChunkWrites) -> list[tuple[object, ...]]:
    """The clocks, counters, direction and outcome of the rollouts that decisions change."""
    return [
        (*counted_values(effect.rollout), effect.back_reason, effect.outcome)
        for effect in writes.effects
        if effect.rollout
    ]


def _step_rows(writes: ChunkWrites) -> list[tuple[object, ...]]:
    """A numbered step for each changing cycle of a rollout."""
    return [
        (
            step.rollout_id,
            step.number,
            writes.phase,
            writes.at,
            step.verdict.value,
            step.inputs,
            step.decision,
            step.whole_step,
        )
        for step in writes.steps
    ]
