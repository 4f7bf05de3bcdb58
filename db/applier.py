"""The bulk write: a chunk of classified decisions becomes rows, set by set, in the transaction that claimed it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from db.deployments import Claim, HistoryHead
from db.engine import driver
from domain.history import history_key, merges
from domain.model import DeploymentSubStep, RolloutOutcome
from domain.replay import decision_json, inputs_json
from domain.transitions import ClassifiedDecision, RevisionMove, clock_stood_still

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
           status_reason = 'drained'
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
        heads = self._history(changing, claim.heads, at)
        self._endpoints(decisions, {**claim.heads, **heads}, at)
        self._rollouts([one for one in decisions if one.deployment.rollout], at)
        self._steps([one for one in changing if one.deployment.rollout], at)
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
                rollout_ids=[_rollout_id(one) for one, _ in creations],
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

    def _rollouts(self, decisions: Sequence[ClassifiedDecision], at: datetime) -> None:
        if not decisions:
            return
        self._execute(
            _UPDATE_ROLLOUTS,
            at=at,
            ids=[_rollout_id(one) for one in decisions],
            steps=[_steps_after(one) for one in decisions],
            back_reasons=[_back_reason(one) for one in decisions],
            stood_stills=[
                timedelta() if one.clock_stopped else clock_stood_still(one.deployment, at) for one in decisions
            ],
            progresses=[_old_ones_leave(one) for one in decisions],
            clocks=[_clock(one, at) for one in decisions],
            outcomes=[_outcome(one) for one in decisions],
        )

    def _steps(self, decisions: Sequence[ClassifiedDecision], at: datetime) -> None:
        if not decisions:
            return
        self._execute(
            _INSERT_STEPS,
            at=at,
            phase=self.phase,
            ids=[_rollout_id(one) for one in decisions],
            steps=[_steps_after(one) for one in decisions],
            verdicts=[one.verdict.value for one in decisions],
            inputs=[Jsonb(inputs_json(one.deployment, at)) for one in decisions],
            decisions=[Jsonb(decision_json(one)) for one in decisions],
        )

    def _history(
        self, changing: Sequence[ClassifiedDecision], heads: Mapping[UUID, HistoryHead], at: datetime
    ) -> dict[UUID, HistoryHead]:
        keyed = [(one, history_key(self.phase, one)) for one in changing]
        repeated = [(one, key) for one, key in keyed if merges(heads[one.deployment.id].key, key)]
        new = [(one, key, uuid4()) for one, key in keyed if not merges(heads[one.deployment.id].key, key)]
        if repeated:
            self._execute(
                _MERGE_HISTORY,
                at=at,
                ids=[heads[one.deployment.id].id for one, _ in repeated],
                messages=[one.reason for one, _ in repeated],
            )
        if new:
            self._execute(
                _INSERT_HISTORY,
                at=at,
                phase=self.phase,
                ids=[record_id for _, _, record_id in new],
                endpoint_ids=[one.deployment.id for one, _, _ in new],
                rollout_ids=[key.rollout_id for _, key, _ in new],
                results=[key.result.value for _, key, _ in new],
                error_codes=[key.error_code for _, key, _ in new],
                targets=[str(key.target) for _, key, _ in new],
                messages=[one.reason for one, _, _ in new],
            )
        return {one.deployment.id: HistoryHead(record_id, str(key)) for one, key, record_id in new}

    def _execute(self, query: str, **parameters: object) -> int:
        return driver(self.connection).execute(query, parameters).rowcount


def _autoscaled(one: ClassifiedDecision) -> bool:
    """A rule moved the count; a way back, which may move it too, has a rollout."""
    return one.deployment.rollout is None and one.desired_replicas != one.deployment.desired_replicas


def _rollout_id(one: ClassifiedDecision) -> UUID | None:
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
