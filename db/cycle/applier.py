"""The applier writes the next snapshots of a chunk into rows, in bulk, in the transaction of the claim."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple, Self
from uuid import UUID, uuid4

from psycopg import Connection, Cursor

from db.connection.arrays import UUIDS
from db.cycle.claim import Claim, HistoryHead
from db.cycle.sticky_slots import give_seats
from db.locking.rows import Columns, columns, named_row
from db.locking.statuses import ACTIVE
from db.outbox import write_events
from domain.cycle.step_deltas import KeptStep
from domain.cycle.writes import DecisionEffects, NewRoute, StepRecord
from domain.model.canary import CanaryState
from domain.model.decision import RouteChanges
from domain.model.deployment import Deployment, Rollout
from domain.outbox.cloud_events import CloudEvent

_CREATED = columns("""
    deployment_id uuid, revision_id uuid, rollout_id uuid, traffic_status text, created_at timestamptz,
    status_changed_at timestamptz, host text
""")

_PROMOTE_ROUTES = "UPDATE routes SET traffic_status = 'active', parked_until = NULL WHERE id = ANY(%(ids)b)"

_PARKED = columns("id uuid, until timestamptz")

_PARK_ROUTES = f"""
    UPDATE routes r SET traffic_status = 'inactive', parked_until = u.until FROM {_PARKED} WHERE r.id = u.id
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


@dataclass(frozen=True, slots=True)
class RecordedRoutes:
    """The sent routes. `hosts`: of the new routes; `drains`: the statement that answers with those of the drained."""

    hosts: Sequence[str | None]
    promoted: int
    drained: int
    drains: Cursor[tuple[Any, ...]] | None

    def result(self) -> StrategyApplyResult:
        """Return what it came to; waits for Postgres."""
        stopping = self.drains.fetchall() if self.drains else []
        return StrategyApplyResult(
            created=len(self.hosts),
            promoted=self.promoted,
            drained=self.drained,
            unplaced=self.hosts.count(None),
            starting=frozenset(host for host in self.hosts if host),
            stopping=frozenset(host for (host,) in stopping if host),
        )


def record_routes(
    connection: Connection,
    changes: Sequence[RouteChanges],
    placed: Sequence[tuple[NewRoute, str | None]],
    at: datetime,
) -> RecordedRoutes:
    """Write the routes of decisions, whose deployments are locked: new ones first, promotions before drains."""
    promoted = [route_id for change in changes for route_id in change.promote_route_ids]
    drained = [route_id for change in changes for route_id in change.drain_route_ids]
    parked = [(route_id, change.park_until) for change in changes for route_id in change.park_route_ids]
    if placed:
        created = [
            (new.deployment_id, new.revision_id, new.rollout_id, new.traffic, at, at, host) for new, host in placed
        ]
        _CREATED.add(connection, "routes", created)
    if promoted:
        connection.execute(_PROMOTE_ROUTES, {"ids": UUIDS(promoted)})
    if parked:
        connection.execute(_PARK_ROUTES, _PARKED.arrays(parked))
    drains = connection.execute(_DRAIN_ROUTES, {"ids": UUIDS(drained), "at": at}) if drained else None
    return RecordedRoutes([host for _, host in placed], len(promoted), len(drained), drains)


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
"""What cycles change of a rollout."""
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
    """In the order of DEPLOYMENT."""
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


def assigned(written: Columns) -> str:
    """All of the columns but the id, for a SET: "lifecycle = u.lifecycle, ..."."""
    return ", ".join(f"{name} = {written.alias}.{name}" for name in written.types if name != "id")


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


def record_rollouts(connection: Connection, left: Iterable[DecisionEffects], at: datetime) -> None:
    """Clocks, counters, direction and outcome of the rollouts that decisions change."""
    rows = [(*counted_values(each.rollout), each.back_reason, each.outcome) for each in left if each.rollout]
    if rows:
        connection.execute(_UPDATE_ROLLOUTS, _DECIDED.arrays(rows, at=at))


def record_history(
    connection: Connection,
    phase: str,
    changing: Sequence[DecisionEffects],
    heads: Mapping[UUID, HistoryHead],
    at: datetime,
) -> list[HistoryHead]:
    """A record for people, or one more attempt on the last one; returns the last record of each, in their order."""
    repeated, new, last = [], [], []
    for each in changing:
        key, decision, head = each.key, each.decision, heads[each.decision.deployment.id]
        if each.remembered_as == head.key:
            repeated.append((head.id, decision.reason))
        elif key:
            head = HistoryHead(uuid4(), each.remembered_as)
            what = (key.rollout_id, phase, key.result.value, key.error_code, key.target)
            new.append((head.id, decision.deployment.id, *what, phase, decision.reason, at, at))
        last.append(head)
    if repeated:
        connection.execute(_MERGE_HISTORY, _REPEATED.arrays(repeated, at=at))
    if new:
        _HISTORY.add(connection, "deployment_history", new)
    return last


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
    """The last steps of these rollouts, each with those that it builds on before it."""
    if not last:
        return []
    return connection.cursor(row_factory=named_row(KeptStep)).execute(_KEPT, _LAST.arrays(last)).fetchall()


def record_steps(connection: Connection, phase: str, steps: Iterable[StepRecord], at: datetime) -> None:
    """One numbered step for each changing cycle of a rollout."""
    rows = [
        (
            step.rollout_id,
            step.number,
            phase,
            at,
            step.verdict.value,
            step.inputs,
            step.decision,
            step.whole_step,
        )
        for step in steps
    ]
    if rows:
        _STEP.add(connection, "rollout_steps", rows)


_WAITING = columns("id uuid, version int8, due_at timestamptz, reason text, waits_for text")

_WAIT = f"""
    UPDATE deployments d SET due_at = u.due_at, reason = u.reason, waits_for = u.waits_for, phase_attempts = 0
      FROM {_WAITING} WHERE d.id = u.id AND d.version = u.version
"""

_TOLD = columns("version int8, due_at timestamptz, reason text, waits_for text, history_id uuid, history_key text")
"""What every change writes: the next version, the next look, and what people are told."""

_MADE = columns("id uuid, phase_attempts int4") + _TOLD

_MOVE = DEPLOYMENT + _TOLD

_TAKE_STEP = f"UPDATE deployments d SET {assigned(_MADE)} FROM {_MADE} WHERE d.id = u.id AND d.version = u.version - 1"

_MAKE_MOVE = f"UPDATE deployments d SET {assigned(_MOVE)} FROM {_MOVE} WHERE d.id = u.id AND d.version = u.version - 1"


class WaitingRow(NamedTuple):
    """A deployment that waits, as its row was read: what is written of it. `waits_for`: what a person must type."""

    id: UUID
    version: int
    due_at: datetime | None
    reason: str
    waits_for: str | None


class StaleSnapshotError(Exception):
    """A deployment changed between the read and the write although it was locked; nothing of the chunk is kept."""


@dataclass(slots=True)
class StrategyResultApplier:
    """The one write of a chunk. `phase` is the handler's name, kept as the actor of each history record.

    Call its methods in their order. Each only sends its statements, so that Postgres writes while Python goes on.

    It writes routes before deployments, and promotions before drains, since triggers check the budget each time:
    the deployment must still be deploying, and its new replicas in traffic, when old ones are drained.
    """

    connection: Connection
    phase: str
    claim: Claim
    _routes: RecordedRoutes | None = None
    _sent: list[Cursor] = field(default_factory=list)
    _asked: int = 0

    def move_routes(self, changes: Sequence[RouteChanges], placed: Sequence[tuple[NewRoute, str | None]]) -> None:
        """Write routes. `placed`: the new ones, with their hosts."""
        self._routes = record_routes(self.connection, changes, placed, self.claim.now)

    def apply(self, left: Sequence[DecisionEffects], glanced: Sequence[WaitingRow] = ()) -> None:
        """Write history, deployments, rollouts and seats, and the waits that a glance found."""
        changing = [each for each in left if each.key]
        waiting = [*(_waiting(each) for each in left if not each.key), *glanced]
        at, heads = self.claim.now, self.claim.heads
        last = record_history(self.connection, self.phase, changing, heads, at) if changing else []
        self._sent += [*self._change(changing, last), *self._wait(waiting)]
        self._asked += len(changing) + len(waiting)
        record_rollouts(self.connection, left, at)
        give_seats(self.connection, self.claim.seated if changing else ())

    def record(self, steps: Sequence[StepRecord], told: Sequence[CloudEvent]) -> None:
        """Keep the steps of rollouts, and the events that subscribers are told."""
        record_steps(self.connection, self.phase, steps, self.claim.now)
        write_events(self.connection, told)

    def result(self) -> StrategyApplyResult:
        """Wait for Postgres. Raises StaleSnapshotError when a version is not as it was read."""
        written = sum(cursor.rowcount for cursor in self._sent)
        if written != self._asked:
            missing = self._asked - written
            raise StaleSnapshotError(f"{missing} of {self._asked} deployments changed while they were locked")
        return self._routes.result() if self._routes else StrategyApplyResult()

    def _wait(self, waiting: Sequence[WaitingRow]) -> Iterator[Cursor]:
        """Write the next look and the reason of each deployment that waits, and nothing else."""
        if waiting:
            yield self.connection.execute(_WAIT, _WAITING.arrays(waiting))

    def _change(self, changing: Sequence[DecisionEffects], heads: Sequence[HistoryHead]) -> Iterator[Cursor]:
        """Write few columns for a decision that only moves routes, as most do, and all columns for the others."""
        steps, moves = [], []
        for each, head in zip(changing, heads, strict=True):
            decision = each.decision
            said = (decision.due_at, decision.reason, each.waits_for)
            told = (decision.deployment.version + 1, *said, head.id, head.key)
            if each.deployment is None:
                steps.append((decision.deployment.id, decision.attempts, *told))
            else:
                moves.append((*deployment_values(each.deployment), *told))
        if steps:
            yield self.connection.execute(_TAKE_STEP, _MADE.arrays(steps))
        if moves:
            yield self.connection.execute(_MAKE_MOVE, _MOVE.arrays(moves))


def _waiting(left: DecisionEffects) -> WaitingRow:
    decision, deployment = left.decision, left.decision.deployment
    return WaitingRow(deployment.id, deployment.version, decision.due_at, decision.reason, left.waits_for)
