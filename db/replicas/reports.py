"""What became of routes, in bulk: written once, their deployments marked, failures counted where they count."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor

from db.engine import database_now
from db.locked import ALWAYS, changed, lock
from db.schema.statuses import ACTIVE
from domain.model import RouteStatus, StartFailures
from domain.replicas.reported import News, counters_after, failures_after, news_of

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

_COUNTED = """
    SELECT d.id, d.failed_revision_id, d.failed_starts, d.last_failed_at, o.id, o.to_revision_id, o.failed_routes,
           o.last_progress_at
      FROM deployments d LEFT JOIN rollouts o ON o.id = d.rollout_id
     WHERE d.id = ANY(%s)
"""

_COUNT_FAILED_STARTS = """
    UPDATE deployments d
       SET failed_revision_id = u.revision_id, failed_starts = u.in_a_row, last_failed_at = u.last_at
      FROM unnest(%(ids)s::uuid[], %(revision_ids)s::uuid[], %(in_a_row)s::int[], %(last_ats)s::timestamptz[])
           AS u (id, revision_id, in_a_row, last_at)
     WHERE d.id = u.id
"""

_COUNT_IN_ROLLOUTS = """
    UPDATE rollouts o
       SET failed_routes = u.failed_routes, last_progress_at = u.last_progress_at
      FROM unnest(%(ids)s::uuid[], %(failed)s::int[], %(progresses)s::timestamptz[])
           AS u (id, failed_routes, last_progress_at)
     WHERE o.id = u.id
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
    news: dict[UUID, list[tuple[UUID, RouteStatus]]] = defaultdict(list)
    for _, deployment_id, revision_id, _, _, status in became:
        news[deployment_id].append((revision_id, RouteStatus(status)))
    changed(cursor, news.keys(), mark=ALWAYS)
    _count(cursor, {owner: news_of(statuses, blame=blame_revisions) for owner, statuses in news.items()}, at)
    return frozenset(news)


def _count(cursor: Cursor[Any], news: Mapping[UUID, Sequence[News]], at: datetime) -> None:
    """Failed starts of deployments, and failures and progress of their rollouts, as the domain counts them."""
    failing, counted = [], []
    for owner, revision_id, in_a_row, last_at, rollout_id, target, failed_routes, progress in cursor.execute(
        _COUNTED, (list(news),)
    ).fetchall():
        before = StartFailures(revision_id, in_a_row, last_at) if in_a_row else None
        after = failures_after(before, news[owner], at)
        if after != before:
            failing.append((owner, after or StartFailures(revision_id, 0, last_at)))
        counted += [
            (rollout_id, *counters_after(failed_routes, progress, item, at))
            for item in news[owner]
            if rollout_id and item.revision_id == target
        ]
    if failing:
        cursor.execute(_COUNT_FAILED_STARTS, _failures(failing))
    if counted:
        rollout_ids, failed, progresses = (list(column) for column in zip(*counted, strict=True))
        cursor.execute(_COUNT_IN_ROLLOUTS, {"ids": rollout_ids, "failed": failed, "progresses": progresses})


def _failures(failing: Sequence[tuple[UUID, StartFailures]]) -> dict[str, Any]:
    return {
        "ids": [owner for owner, _ in failing],
        "revision_ids": [failures.revision_id for _, failures in failing],
        "in_a_row": [failures.in_a_row for _, failures in failing],
        "last_ats": [failures.last_at for _, failures in failing],
    }


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
