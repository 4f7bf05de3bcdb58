"""What became of routes, in bulk: written once, their deployments marked, failures counted where they count."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.engine import database_now
from db.locked import ALWAYS, changed, lock
from db.schema.statuses import ACTIVE
from domain.model import RouteStatus

_REPORT = f"""
    UPDATE routes r
       SET status = u.status, probe_streak = u.streak,
           status_changed_at = CASE WHEN u.status <> r.status THEN %(at)s ELSE r.status_changed_at END,
           status_reason = CASE WHEN u.status <> r.status THEN coalesce(u.reason, '') ELSE r.status_reason END,
           traffic_status = CASE WHEN u.status = 'failed' THEN 'inactive' ELSE r.traffic_status END,
           log_tail = coalesce(u.log_tail, r.log_tail), address = coalesce(u.address, r.address),
           replica_handle = coalesce(u.handle, r.replica_handle),
           started_at = CASE WHEN u.address IS NOT NULL OR u.handle IS NOT NULL
                             THEN coalesce(r.started_at, %(at)s) ELSE r.started_at END
      FROM unnest(%(ids)s::uuid[], %(was)s::text[], %(statuses)s::text[], %(streaks)s::int[], %(reasons)s::text[],
                  %(log_tails)s::text[], %(addresses)s::text[], %(handles)s::text[])
           AS u (id, was, status, streak, reason, log_tail, address, handle)
     WHERE r.id = u.id AND r.status = u.was AND r.{ACTIVE}
    RETURNING r.id, r.deployment_id, r.revision_id, r.rollout_id, old.status, new.status
"""

# one that starts well forgives its revision the starts that failed before it
_COUNT_IN_A_ROW = """
    UPDATE deployments d
       SET failed_revision_id = u.revision_id,
           last_failed_at = CASE WHEN u.failed > 0 THEN %(at)s ELSE d.last_failed_at END,
           failed_starts = CASE WHEN u.failed > 0 AND d.failed_revision_id = u.revision_id
                                THEN d.failed_starts + u.failed
                                ELSE u.failed END
      FROM unnest(%(ids)s::uuid[], %(revision_ids)s::uuid[], %(failed)s::int[], %(healthy)s::int[])
           AS u (id, revision_id, failed, healthy)
     WHERE d.id = u.id
       AND (u.failed > 0 OR (u.healthy > 0 AND d.failed_revision_id = u.revision_id AND d.failed_starts > 0))
"""

_COUNT_IN_ROLLOUTS = """
    UPDATE rollouts o
       SET failed_routes = o.failed_routes + u.failed,
           last_progress_at = CASE WHEN u.healthy > 0 THEN %(at)s ELSE o.last_progress_at END
      FROM unnest(%(ids)s::uuid[], %(revision_ids)s::uuid[], %(failed)s::int[], %(healthy)s::int[])
           AS u (id, revision_id, failed, healthy)
     WHERE o.deployment_id = u.id AND o.to_revision_id = u.revision_id AND o.ended_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class RouteReport:
    """What became of a route. Nothing happens when its status is no longer `was`: someone else was faster.

    Nor does a report bring a route back that is on its way out or gone.

    `address` and `handle` come with the start of its replica; `reason` and `log_tail` with a change of status.
    """

    route_id: UUID
    deployment_id: UUID
    was: RouteStatus
    status: RouteStatus
    streak: int = 0
    reason: str | None = None
    log_tail: str | None = None
    address: str | None = None
    handle: str | None = None


@dataclass(frozen=True, slots=True)
class _Count:
    deployment_id: UUID
    revision_id: UUID
    failed: int
    healthy: int


def apply_reports(
    connection: Connection, reports: Sequence[RouteReport], *, blame_revisions: bool = True
) -> frozenset[UUID]:
    """Write reports, mark the deployments whose routes changed status, and return those deployments' ids.

    `blame_revisions`: failures count as failed starts of their revision, and against the budget of its rollout.
    """
    if not reports:
        return frozenset()
    cursor = connection.cursor()
    lock(cursor, {report.deployment_id for report in reports})
    at = database_now(connection)
    written = cursor.execute(_REPORT, {"at": at, **_columns(reports)}).fetchall()
    became = [row for row in written if row[4] != row[5]]
    if not became:
        return frozenset()
    counts = _counts(became) if blame_revisions else [replace(count, failed=0) for count in _counts(became)]
    touched = frozenset(count.deployment_id for count in counts)
    changed(cursor, touched, mark=ALWAYS)
    cursor.execute(_COUNT_IN_A_ROW, {"at": at, **_as_arrays(_worst_of_each(counts))})
    cursor.execute(_COUNT_IN_ROLLOUTS, {"at": at, **_as_arrays(counts)})
    return touched


def _columns(reports: Sequence[RouteReport]) -> dict[str, Any]:
    return {
        "ids": [report.route_id for report in reports],
        "was": [report.was.value for report in reports],
        "statuses": [report.status.value for report in reports],
        "streaks": [report.streak for report in reports],
        "reasons": [report.reason for report in reports],
        "log_tails": [report.log_tail for report in reports],
        "addresses": [report.address for report in reports],
        "handles": [report.handle for report in reports],
    }


def _counts(changed: Sequence[tuple[Any, ...]]) -> list[_Count]:
    """Per deployment and revision: routes that failed, and routes that became healthy."""
    statuses: dict[tuple[UUID, UUID], list[str]] = defaultdict(list)
    for _, deployment_id, revision_id, _, _, status in changed:
        statuses[deployment_id, revision_id].append(status)
    return [
        _Count(deployment_id, revision_id, became.count(RouteStatus.FAILED), became.count(RouteStatus.HEALTHY))
        for (deployment_id, revision_id), became in statuses.items()
    ]


def _worst_of_each(counts: Sequence[_Count]) -> list[_Count]:
    """One count for each deployment: a deployment remembers the failing starts of one revision."""
    return list({count.deployment_id: count for count in sorted(counts, key=lambda one: one.failed)}.values())


def _as_arrays(counts: Sequence[_Count]) -> dict[str, Any]:
    return {
        "ids": [count.deployment_id for count in counts],
        "revision_ids": [count.revision_id for count in counts],
        "failed": [count.failed for count in counts],
        "healthy": [count.healthy for count in counts],
    }
