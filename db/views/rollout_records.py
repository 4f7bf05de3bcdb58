"""The reads of what is on record of rollouts: those that an undo looks back over, and evidence of judged canaries."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from db.fleet_gates import frozen_now
from db.locking.upstream import OF_DEPLOYMENT
from db.views.deployment_view import DeploymentView
from db.views.deployment_views import existing_deployments
from db.views.fleet_views import reached_at
from db.views.rollout_views import RolloutView
from db.views.route_views import ONLY_FAILED
from domain.cycle.rollout import judging_of
from domain.judge.judge import Point, limits_of
from domain.model.states import RolloutOutcome
from domain.steering.rollout_history import EndedRollout, KnownRevision, NamedRevision, Past, SettingsRelease
from domain.strategies.builtin import stored_policy
from domain.traffic.entrances import settings_of

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
"""The number of rollouts that an undo looks back over."""

_OTHER = """
    SELECT id FROM revisions
     WHERE deployment_id = %s AND id IS DISTINCT FROM %s AND id IS DISTINCT FROM %s LIMIT 1
"""
_FEW = 20
"""The number of newer revisions among which one that is good is looked for."""
_LAST = """
    SELECT to_revision_id, outcome, is_undo FROM rollouts WHERE deployment_id = %s ORDER BY started_at DESC LIMIT 1
"""


_NEWER = f"""
    SELECT v.id, v.name FROM revisions v
     WHERE v.deployment_id = %s AND (%s::uuid IS NULL OR v.id > %s) AND v.id IS DISTINCT FROM %s
       AND NOT ({ONLY_FAILED})
     ORDER BY v.id DESC LIMIT {_FEW}
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
    """The settings changed alone since the last rollout ended, with actors, the oldest first; none in a rollout."""
    rows = connection.execute(_SET_ALONE, {"deployment_id": deployment_id}).fetchall()
    return [f"{message}, by {actor}" for message, actor in rows]


_SETTINGS_RELEASE = """
    SELECT d.settings_release, d.current_revision_id::text,
           (SELECT id::text FROM rollouts WHERE deployment_id = d.id ORDER BY started_at DESC LIMIT 1)
      FROM deployments d WHERE d.id = %s
"""


def sections(connection: Connection[Any], deployment: str, names: Iterable[str]) -> dict[str, Any]:
    """The named sections of a file as they describe an existing deployment now: replicas, policy, traffic."""
    if not names:
        return {}
    (view,) = existing_deployments(connection, [deployment])
    return _sections(connection, view, names)


def _sections(connection: Connection[Any], view: DeploymentView, names: Iterable[str]) -> dict[str, Any]:
    traffic = settings_of(view.name, *reached_at(connection, view.id).reached)
    by_section = {
        "replicas": view.desired_replicas,
        "policy": stored_policy(view.policy).as_json() if view.policy else None,
        "traffic": traffic.model_dump(mode="json", exclude_defaults=True),
    }
    return {name: by_section[name] for name in names}


def settings_release(connection: Connection[Any], view: DeploymentView) -> SettingsRelease | None:
    """The file that changed settings alone after the last rollout, as far as nobody has changed them since."""
    ((stored_release, *runs),) = connection.execute(_SETTINGS_RELEASE, (view.id,))
    if stored_release is None or view.rollout_id is not None:
        return None
    release = SettingsRelease(**stored_release)
    if runs != [release.revision_id, release.rollout_id]:
        return None
    return release.against(_sections(connection, view, release.after))


def past_of(connection: Connection[Any], view: DeploymentView) -> Past:
    """Read what the rules of commands know of the deployment besides its snapshot."""
    current, deploying = view.current_revision_id, view.deploying_revision_id
    other = connection.execute(_OTHER, (view.id, current, deploying)).fetchone()
    last = connection.execute(_LAST, (view.id,)).fetchone()
    return Past(
        policy=stored_policy(view.policy) if view.policy else None,
        other=other[0] if other else None,
        last=(last[0], RolloutOutcome(last[1]) if last[1] else None) if last else None,
        last_is_undo=bool(last and last[2]),
        ended=ended_rollouts(connection, view.id),
        settings=settings_release(connection, view),
        frozen=frozen_now(connection, view.name, view.now),
        current=view.current_revision or "",
        newer=[NamedRevision(*row) for row in connection.execute(_NEWER, (view.id, current, current, deploying))],
    )


_POINTS = """
    SELECT at, weight, canary, canary_failed, control, control_failed, harm, good
      FROM evidence_points WHERE rollout_id = %s ORDER BY at
"""


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """The points that were kept of a judged canary, and what the log e-values must reach; None without a judge.

    `compared_with`: control, which is the old revision, or baseline, which is its fresh replicas.
    """

    compared_with: str
    harm_limit: float | None
    good_limit: float | None
    points: list[Point]


def evidence_shown(connection: Connection[Any], rollout: RolloutView) -> EvidenceView:
    """Read the evidence of a rollout, under way or ended."""
    judging = judging_of(rollout.snapshot.policy)
    if judging is None or judging.settings is None:
        return EvidenceView("control", None, None, [])
    limits = limits_of(judging.settings, had_copies=judging.copied > 0)
    points = connection.cursor(row_factory=class_row(Point)).execute(_POINTS, (rollout.id,)).fetchall()
    compared_with = "baseline" if judging.has_baseline else "control"
    return EvidenceView(compared_with, limits.harm, limits.good, points)
