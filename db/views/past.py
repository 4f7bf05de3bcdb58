"""The reads of what ran before: the rollouts that an undo looks back over, and all that rules know of them."""

from typing import Any
from uuid import UUID

from psycopg import Connection

from db.freezes import frozen_now
from db.locking.upstream import OF_DEPLOYMENT
from db.views.deployment_view import DeploymentView
from domain.model.states import RolloutOutcome
from domain.steering.rollout_history import EndedRollout, KnownRevision, Past
from domain.strategies import stored_policy

_ENDED = f"""
    SELECT f.id, f.name, md5(f.spec::text || coalesce(f.wire, {OF_DEPLOYMENT})),
           t.id, t.name, md5(t.spec::text || coalesce(t.wire, {OF_DEPLOYMENT})), o.outcome, o.ended_at, o.is_undo,
           o.desired_at_start, o.desired_with_revision
      FROM rollouts o JOIN revisions f ON f.id = o.from_revision_id JOIN revisions t ON t.id = o.to_revision_id
      JOIN deployments d ON d.id = o.deployment_id
     WHERE o.deployment_id = %s AND o.outcome IN ('completed', 'rolled_back')
     ORDER BY o.started_at DESC LIMIT %s
"""

_REMEMBERED = 200
"""How many rollouts an undo looks back over."""

_OTHER = """
    SELECT id FROM revisions
     WHERE deployment_id = %s AND id IS DISTINCT FROM %s AND id IS DISTINCT FROM %s LIMIT 1
"""
_LAST = """
    SELECT to_revision_id, outcome, is_undo FROM rollouts WHERE deployment_id = %s ORDER BY started_at DESC LIMIT 1
"""


_SET_ALONE = """
    SELECT CASE h.phase WHEN 'scale' THEN 'scaled ' ELSE '' END || h.message, h.actor
      FROM deployment_history h JOIN deployments d ON d.id = h.deployment_id
     WHERE h.deployment_id = %(deployment_id)s AND h.phase IN ('set_traffic', 'scale') AND h.error_code IS NULL
       AND d.deploying_revision_id IS NULL
       AND h.created_at > coalesce((SELECT max(ended_at) FROM rollouts WHERE deployment_id = %(deployment_id)s),
                                   '-infinity')
     ORDER BY h.created_at, h.id
"""


def ended_rollouts(connection: Connection[Any], deployment_id: UUID) -> list[EndedRollout]:
    """Read what an undo looks back over, the eldest first."""
    rows = connection.execute(_ENDED, (deployment_id, _REMEMBERED)).fetchall()
    return [
        EndedRollout(KnownRevision(*row[:3]), KnownRevision(*row[3:6]), RolloutOutcome(row[6]), *row[7:])
        for row in reversed(rows)
    ]


def set_alone(connection: Connection[Any], deployment_id: UUID) -> list[str]:
    """Say what was set by itself since the last rollout ended, and by whom, the eldest first; nothing in a rollout."""
    rows = connection.execute(_SET_ALONE, {"deployment_id": deployment_id}).fetchall()
    return [f"{message}, by {actor}" for message, actor in rows]


def past_of(connection: Connection[Any], view: DeploymentView) -> Past:
    """Read what the rules of commands know of the deployment beside its snapshot."""
    other = connection.execute(_OTHER, (view.id, view.current_revision_id, view.deploying_revision_id)).fetchone()
    last = connection.execute(_LAST, (view.id,)).fetchone()
    return Past(
        policy=stored_policy(view.policy) if view.policy else None,
        other=other[0] if other else None,
        last=(last[0], RolloutOutcome(last[1]) if last[1] else None) if last else None,
        last_is_undo=bool(last and last[2]),
        ended=ended_rollouts(connection, view.id),
        frozen=frozen_now(connection, view.name, view.now),
    )
