"""The bulk write: a chunk of classified decisions becomes rows, set by set, in the transaction that claimed it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Self
from uuid import UUID

from sqlalchemy import Connection

from db.deployments import Claim, HistoryHead
from db.engine import driver
from db.records import record_history, record_rollouts, record_steps, rollout_id
from domain.transitions import ClassifiedDecision

_CREATE_ROUTES = """
    INSERT INTO routes (endpoint_id, revision_id, rollout_id, traffic_status, created_at, status_changed_at)
    SELECT u.endpoint_id, u.revision_id, u.rollout_id, u.traffic, %(at)s, %(at)s
      FROM unnest(%(endpoint_ids)s::uuid[], %(revision_ids)s::uuid[], %(rollout_ids)s::uuid[], %(traffics)s::text[],
                  %(counts)s::int[]) AS u (endpoint_id, revision_id, rollout_id, traffic, count),
           generate_series(1, u.count)
"""

_PROMOTE_ROUTES = "UPDATE routes SET traffic_status = 'active', parked_until = NULL WHERE id = ANY(%(ids)s)"

_PARK_ROUTES = """
    UPDATE routes r SET traffic_status = 'inactive', parked_until = u.until
      FROM unnest(%(ids)s::uuid[], %(untils)s::timestamptz[]) AS u (id, until)
     WHERE r.id = u.id
"""

_DRAIN_ROUTES = """
    UPDATE routes
       SET status = 'terminating', traffic_status = 'inactive', status_changed_at = %(at)s, drain_started_at = %(at)s,
           drain_xid = pg_current_xact_id(), status_reason = 'drained'
     WHERE id = ANY(%(ids)s) AND status NOT IN ('terminating', 'terminated', 'failed')
"""

_UPDATE_ENDPOINTS = """
    UPDATE endpoints e
       SET lifecycle = u.lifecycle, sub_step = u.sub_step, reason = u.reason,
           due_at = CASE WHEN u.lifecycle <> 'destroyed' THEN u.due_at END, -- or every claim would meet it for ever
           desired_replicas = u.desired, phase_attempts = u.attempts, degraded_reason = u.degraded,
           last_autoscaled_at = CASE WHEN u.autoscaled THEN %(at)s ELSE e.last_autoscaled_at END,
           retry_at = u.retry_at, history_id = u.history_id, history_key = u.history_key,
           current_revision_id = CASE u.revision WHEN 'swap' THEN e.deploying_revision_id
                                                 ELSE e.current_revision_id END,
           deploying_revision_id = CASE u.revision WHEN 'keep' THEN e.deploying_revision_id END,
           rollout_id = CASE u.revision WHEN 'keep' THEN e.rollout_id END,
           paused_at = CASE u.revision WHEN 'keep' THEN e.paused_at END,
           phase_started_at = CASE WHEN (u.lifecycle, u.sub_step) IS DISTINCT FROM (e.lifecycle, e.sub_step)
                                   THEN %(at)s ELSE e.phase_started_at END,
           version = e.version + u.bump
      FROM unnest(%(ids)s::uuid[], %(versions)s::bigint[], %(bumps)s::int[], %(lifecycles)s::text[],
                  %(sub_steps)s::text[], %(due_ats)s::timestamptz[], %(reasons)s::text[], %(desireds)s::int[],
                  %(attempts)s::int[], %(degradeds)s::text[], %(retry_ats)s::timestamptz[], %(history_ids)s::uuid[],
                  %(history_keys)s::text[], %(revisions)s::text[], %(autoscaleds)s::bool[])
           AS u (id, version, bump, lifecycle, sub_step, due_at, reason, desired, attempts, degraded, retry_at,
                 history_id, history_key, revision, autoscaled)
     WHERE e.id = u.id AND e.version = u.version
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
        of db/guards.py as its deployment stands at that moment, still deploying, with its new replicas in traffic.
        """
        at = claim.now
        changing = [one for one in decisions if one.changes_anything]
        result = self._routes(changing, at)
        heads = record_history(self.connection, self.phase, changing, claim.heads, at)
        self._endpoints(decisions, {**claim.heads, **heads}, at)
        record_rollouts(self.connection, decisions, at)
        record_steps(self.connection, self.phase, changing, at)
        return result

    def _routes(self, changing: Sequence[ClassifiedDecision], at: datetime) -> StrategyApplyResult:
        creations = [(one, spec) for one in changing for spec in one.changes.rollout_specs]
        promoted = [route_id for one in changing for route_id in one.changes.promote_route_ids]
        drained = [route_id for one in changing for route_id in one.changes.drain_route_ids]
        parked = [(route_id, one.changes.park_until) for one in changing for route_id in one.changes.park_route_ids]
        if creations:
            self._execute(
                _CREATE_ROUTES,
                at=at,
                endpoint_ids=[one.deployment.id for one, _ in creations],
                revision_ids=[spec.revision_id for _, spec in creations],
                rollout_ids=[rollout_id(one) for one, _ in creations],
                traffics=[spec.traffic.value for _, spec in creations],
                counts=[spec.count for _, spec in creations],
            )
        if promoted:
            self._execute(_PROMOTE_ROUTES, ids=promoted)
        if parked:
            self._execute(_PARK_ROUTES, ids=[one for one, _ in parked], untils=[until for _, until in parked])
        if drained:
            self._execute(_DRAIN_ROUTES, ids=drained, at=at)
        created = sum(spec.count for _, spec in creations)
        return StrategyApplyResult(len(changing), created, len(promoted), len(drained))

    def _endpoints(
        self, decisions: Sequence[ClassifiedDecision], heads: Mapping[UUID, HistoryHead], at: datetime
    ) -> None:
        written = self._execute(
            _UPDATE_ENDPOINTS,
            at=at,
            ids=[one.deployment.id for one in decisions],
            versions=[one.deployment.version for one in decisions],
            bumps=[int(one.changes_anything) for one in decisions],
            lifecycles=[one.to.lifecycle.value for one in decisions],
            sub_steps=[one.to.sub_step.value if one.to.sub_step else None for one in decisions],
            due_ats=[one.due_at for one in decisions],
            reasons=[one.reason for one in decisions],
            desireds=[one.desired_replicas for one in decisions],
            attempts=[one.attempts for one in decisions],
            degradeds=[one.degraded_reason for one in decisions],
            retry_ats=[one.retry_at for one in decisions],
            history_ids=[heads[one.deployment.id].id for one in decisions],
            history_keys=[heads[one.deployment.id].key for one in decisions],
            revisions=[one.revision.value for one in decisions],
            autoscaleds=[_autoscaled(one) for one in decisions],
        )
        if written != len(decisions):
            raise StaleSnapshotError(
                f"{len(decisions) - written} of {len(decisions)} deployments changed while they were locked"
            )

    def _execute(self, query: str, **parameters: object) -> int:
        return driver(self.connection).execute(query, parameters).rowcount


def _autoscaled(one: ClassifiedDecision) -> bool:
    """A rule moved the count; a way back, which may move it too, has a rollout."""
    return one.deployment.rollout is None and one.desired_replicas != one.deployment.desired_replicas
