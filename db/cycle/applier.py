"""The bulk write: a chunk of classified decisions becomes rows, set by set, in the transaction that claimed it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString, Self

from psycopg import Connection

from db.cycle.claim import Claim, HistoryHead
from db.cycle.copying import copy_rows
from db.cycle.records import record_history, record_rollouts, record_steps, rollout_id
from db.schema.statuses import ACTIVE
from domain.after import deployment_after
from domain.transitions import ClassifiedDecision

_CREATED_ROUTE: Mapping[LiteralString, LiteralString] = {
    "deployment_id": "uuid",
    "revision_id": "uuid",
    "rollout_id": "uuid",
    "traffic_status": "text",
    "created_at": "timestamptz",
    "status_changed_at": "timestamptz",
}

_PROMOTE_ROUTES = "UPDATE routes SET traffic_status = 'active', parked_until = NULL WHERE id = ANY(%(ids)b)"

_PARK_ROUTES = """
    UPDATE routes r SET traffic_status = 'inactive', parked_until = u.until
      FROM unnest(%(ids)b::uuid[], %(untils)b::timestamptz[]) AS u (id, until)
     WHERE r.id = u.id
"""

_DRAIN_ROUTES = f"""
    UPDATE routes
       SET status = 'terminating', traffic_status = 'inactive', status_changed_at = %(at)b, drain_started_at = %(at)b,
           drain_xid = pg_current_xact_id(), status_reason = 'drained'
     WHERE id = ANY(%(ids)b) AND {ACTIVE}
"""

_MARK_LATER = """
    UPDATE deployments d SET due_at = u.due_at, reason = u.reason, phase_attempts = 0
      FROM unnest(%(ids)b::uuid[], %(versions)b::bigint[], %(due_ats)b::timestamptz[], %(reasons)b::text[])
           AS u (id, version, due_at, reason)
     WHERE d.id = u.id AND d.version = u.version
"""

_UPDATE_DEPLOYMENTS = """
    UPDATE deployments d
       SET lifecycle = u.lifecycle, sub_step = u.sub_step, reason = u.reason, due_at = u.due_at,
           desired_replicas = u.desired, current_revision_id = u.current, deploying_revision_id = u.deploying,
           rollout_id = u.rollout_id, paused_at = u.paused_at, phase_started_at = u.phase_started_at,
           phase_attempts = u.attempts, degraded_reason = u.degraded, retry_at = u.retry_at,
           last_autoscaled_at = u.autoscaled_at, history_id = u.history_id, history_key = u.history_key,
           version = u.version
      FROM unnest(%(ids)b::uuid[], %(befores)b::bigint[], %(versions)b::bigint[], %(lifecycles)b::text[],
                  %(sub_steps)b::text[], %(due_ats)b::timestamptz[], %(reasons)b::text[], %(desireds)b::int[],
                  %(currents)b::uuid[], %(deployings)b::uuid[], %(rollout_ids)b::uuid[], %(paused_ats)b::timestamptz[],
                  %(phase_started_ats)b::timestamptz[], %(attempts)b::int[], %(degradeds)b::text[],
                  %(retry_ats)b::timestamptz[], %(autoscaled_ats)b::timestamptz[], %(history_ids)b::uuid[],
                  %(history_keys)b::text[])
           AS u (id, before, version, lifecycle, sub_step, due_at, reason, desired, current, deploying, rollout_id,
                 paused_at, phase_started_at, attempts, degraded, retry_at, autoscaled_at, history_id, history_key)
     WHERE d.id = u.id AND d.version = u.before
"""


class StaleSnapshotError(Exception):
    """A deployment changed between the read and the write although it was locked; nothing of the chunk is kept."""


@dataclass(frozen=True, slots=True)
class StrategyApplyResult:
    """What a chunk wrote: deployments that changed, and routes created, brought into traffic and drained."""

    changed: int = 0
    created: int = 0
    promoted: int = 0
    drained: int = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.changed + other.changed,
            self.created + other.created,
            self.promoted + other.promoted,
            self.drained + other.drained,
        )


@dataclass(frozen=True, slots=True)
class StrategyResultApplier:
    """The one write. `phase` is the handler's name, kept as the actor of each history record."""

    connection: Connection
    phase: str

    def apply(self, decisions: Sequence[ClassifiedDecision], claim: Claim) -> StrategyApplyResult:
        """Write a chunk. Raises StaleSnapshotError when a version is not the one that was read.

        Routes before deployments, and of the routes promotions before drains: each statement is judged by the budgets
        of db/schema/guards.py as its deployment stands at that moment: still deploying, its new replicas in traffic.
        """
        at = claim.now
        changing = [one for one in decisions if one.changes_anything]
        waiting = [one for one in decisions if not one.changes_anything]
        result = self._routes(changing, at)
        heads = record_history(self.connection, self.phase, changing, claim.heads, at)
        written = self._deployments(changing, heads, at) + self._later(waiting)
        if written != len(decisions):
            raise StaleSnapshotError(
                f"{len(decisions) - written} of {len(decisions)} deployments changed while they were locked"
            )
        record_rollouts(self.connection, decisions, at)
        record_steps(self.connection, self.phase, changing, at)
        return result

    def _routes(self, changing: Sequence[ClassifiedDecision], at: datetime) -> StrategyApplyResult:
        created = [
            (one.deployment.id, spec.revision_id, rollout_id(one), spec.traffic.value, at, at)
            for one in changing
            for spec in one.changes.rollout_specs
            for _ in range(spec.count)
        ]
        promoted = [route_id for one in changing for route_id in one.changes.promote_route_ids]
        drained = [route_id for one in changing for route_id in one.changes.drain_route_ids]
        parked = [(route_id, one.changes.park_until) for one in changing for route_id in one.changes.park_route_ids]
        if created:
            copy_rows(self.connection, "routes", _CREATED_ROUTE, created)
        if promoted:
            self._execute(_PROMOTE_ROUTES, ids=promoted)
        if parked:
            self._execute(_PARK_ROUTES, ids=[one for one, _ in parked], untils=[until for _, until in parked])
        if drained:
            self._execute(_DRAIN_ROUTES, ids=drained, at=at)
        return StrategyApplyResult(len(changing), len(created), len(promoted), len(drained))

    def _later(self, waiting: Sequence[ClassifiedDecision]) -> int:
        """A wait moves the mark and says why, and that is all."""
        if not waiting:
            return 0
        return self._execute(
            _MARK_LATER,
            ids=[one.deployment.id for one in waiting],
            versions=[one.deployment.version for one in waiting],
            due_ats=[one.due_at for one in waiting],
            reasons=[one.reason for one in waiting],
        )

    def _deployments(self, changing: Sequence[ClassifiedDecision], heads: Sequence[HistoryHead], at: datetime) -> int:
        if not changing:
            return 0
        after = [deployment_after(decision, at) for decision in changing]
        return self._execute(
            _UPDATE_DEPLOYMENTS,
            ids=[deployment.id for deployment in after],
            befores=[decision.deployment.version for decision in changing],
            versions=[deployment.version for deployment in after],
            lifecycles=[deployment.status.lifecycle for deployment in after],
            sub_steps=[deployment.status.sub_step for deployment in after],
            due_ats=[decision.due_at for decision in changing],
            reasons=[decision.reason for decision in changing],
            desireds=[deployment.desired_replicas for deployment in after],
            currents=[deployment.current_revision_id for deployment in after],
            deployings=[deployment.deploying_revision_id for deployment in after],
            rollout_ids=[deployment.rollout.id if deployment.rollout else None for deployment in after],
            paused_ats=[deployment.paused_at for deployment in after],
            phase_started_ats=[deployment.phase_started_at for deployment in after],
            attempts=[deployment.phase_attempts for deployment in after],
            degradeds=[deployment.degraded_reason for deployment in after],
            retry_ats=[deployment.retry_at for deployment in after],
            autoscaled_ats=[deployment.last_autoscaled_at for deployment in after],
            history_ids=[head.id for head in heads],
            history_keys=[head.key for head in heads],
        )

    def _execute(self, query: str, **parameters: object) -> int:
        return self.connection.execute(query, parameters).rowcount
