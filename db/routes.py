"""Routes as the runtime and the probes see them: what is to be started, probed and stopped, and what became of it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, cast
from uuid import UUID

from psycopg.rows import class_row
from sqlalchemy import Connection

from db.deployments import lifecycle_status
from db.engine import driver
from db.tables import ACTIVE
from domain.errors import RouteNotFoundError
from domain.model import DeploymentLifecycleStatus, RouteStatus
from domain.revision import RevisionSpec

_ROUTE = """
    SELECT r.id, r.endpoint_id, e.name AS deployment, v.name AS revision, v.spec::text, r.status, r.address,
           r.started_at, r.probe_streak, r.drain_started_at, r.out_of_traffic_at, r.stop_requested_at
      FROM routes r JOIN endpoints e ON e.id = r.endpoint_id JOIN revisions v ON v.id = r.revision_id
"""

_TO_START = f"""
    {_ROUTE}
     WHERE r.host = %s AND r.status = 'provisioning' AND r.started_at IS NULL AND r.stopped_at IS NULL
     ORDER BY r.id LIMIT %s
"""

_RUNNING = f"""
    {_ROUTE}
     WHERE r.host = %s AND r.{ACTIVE} AND r.started_at IS NOT NULL AND r.stopped_at IS NULL
     ORDER BY r.id
"""

_STARTING = _RUNNING.replace(f"r.{ACTIVE}", "r.status = 'provisioning'")

_TO_STOP = f"""
    {_ROUTE} WHERE r.host = %s AND r.status IN ('terminating', 'failed') AND r.stopped_at IS NULL ORDER BY r.id
"""

_BY_ID = f"{_ROUTE} WHERE r.id = %s"

_LOCK_DEPLOYMENTS = "SELECT id FROM endpoints WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE"

_REPORT = """
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
     WHERE r.id = u.id AND r.status = u.was AND r.status NOT IN ('terminating', 'terminated', 'failed')
    RETURNING r.id, r.endpoint_id, r.revision_id, r.rollout_id, old.status, new.status
"""

_MARK = """
    UPDATE endpoints e
       SET version = e.version + 1, due_at = %(at)s,
           failed_revision_id = CASE WHEN u.failed > 0 THEN u.revision_id ELSE e.failed_revision_id END,
           last_failed_at = CASE WHEN u.failed > 0 THEN %(at)s ELSE e.last_failed_at END,
           failed_starts = CASE WHEN u.failed > 0 AND e.failed_revision_id = u.revision_id
                                THEN e.failed_starts + u.failed
                                WHEN u.failed > 0 THEN u.failed
                                WHEN u.healthy > 0 AND e.failed_revision_id = u.revision_id THEN 0
                                ELSE e.failed_starts END
      FROM unnest(%(ids)s::uuid[], %(revision_ids)s::uuid[], %(failed)s::int[], %(healthy)s::int[])
           AS u (id, revision_id, failed, healthy)
     WHERE e.id = u.id
"""

_COUNT_IN_ROLLOUTS = """
    UPDATE rollouts o
       SET failed_routes = o.failed_routes + u.failed,
           last_progress_at = CASE WHEN u.healthy > 0 THEN %(at)s ELSE o.last_progress_at END
      FROM unnest(%(ids)s::uuid[], %(revision_ids)s::uuid[], %(failed)s::int[], %(healthy)s::int[])
           AS u (id, revision_id, failed, healthy)
     WHERE o.endpoint_id = u.id AND o.to_revision_id = u.revision_id AND o.ended_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A route with what its runtime needs to know. `started_at`: when its replica was started."""

    id: UUID
    endpoint_id: UUID
    deployment: str
    revision: str
    spec: RevisionSpec
    status: RouteStatus
    address: str | None
    started_at: datetime | None
    probe_streak: int
    drain_started_at: datetime | None
    out_of_traffic_at: datetime | None
    stop_requested_at: datetime | None

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", _parsed(cast("str", self.spec)))
        object.__setattr__(self, "status", RouteStatus(self.status))


@dataclass(frozen=True, slots=True)
class RouteReport:
    """What became of a route. Nothing happens when its status is no longer `was`: someone else was faster.

    Nor does a report bring a route back that is on its way out or gone.

    `address` and `handle` come with the start of its replica; `reason` and `log_tail` with a change of status.
    """

    route_id: UUID
    endpoint_id: UUID
    was: RouteStatus
    status: RouteStatus
    streak: int = 0
    reason: str | None = None
    log_tail: str | None = None
    address: str | None = None
    handle: str | None = None


@dataclass(frozen=True, slots=True)
class _Count:
    endpoint_id: UUID
    revision_id: UUID
    failed: int
    healthy: int


def routes_to_start(connection: Connection, host: str, limit: int) -> list[RouteRow]:
    """Provisioning routes of a host whose replica nobody has started yet, oldest first."""
    return _rows(connection, _TO_START, (host, limit))


def running_routes(connection: Connection, host: str, *, only_starting: bool = False) -> list[RouteRow]:
    """Live routes of a host whose replica was started: those to probe, or of them those that were never healthy yet."""
    return _rows(connection, _STARTING if only_starting else _RUNNING, (host,))


def routes_to_stop(connection: Connection, host: str) -> list[RouteRow]:
    """Routes of a host on their way out, and failed ones, whose replica is not known to be gone."""
    return _rows(connection, _TO_STOP, (host,))


def lock_route(connection: Connection, route_id: UUID) -> RouteRow:
    """One route, its deployment locked before it is read. Raises RouteNotFoundError."""
    cursor = driver(connection).cursor()
    owners = cursor.execute("SELECT endpoint_id FROM routes WHERE id = %s", (route_id,)).fetchall()
    cursor.execute(_LOCK_DEPLOYMENTS, ([row[0] for row in owners],))
    rows = _rows(connection, _BY_ID, (route_id,))
    if not rows:
        raise RouteNotFoundError(
            f"there is no route {route_id}; 'rollway routes' lists those that exist", route=route_id
        )
    return rows[0]


def apply_reports(
    connection: Connection, reports: Sequence[RouteReport], *, blame_revisions: bool = True
) -> frozenset[UUID]:
    """Write reports, mark the deployments whose routes changed status, and return those deployments' ids.

    `blame_revisions`: failures count as failed starts of their revision, and against the budget of its rollout.
    """
    if not reports:
        return frozenset()
    cursor = driver(connection).cursor()
    cursor.execute(_LOCK_DEPLOYMENTS, (sorted({report.endpoint_id for report in reports}),))
    (at,) = cursor.execute("SELECT clock_timestamp()").fetchone() or (None,)
    written = cursor.execute(_REPORT, {"at": at, **_columns(reports)}).fetchall()
    changed = [row for row in written if row[4] != row[5]]
    if not changed:
        return frozenset()
    counts = _counts(changed) if blame_revisions else [replace(one, failed=0) for one in _counts(changed)]
    cursor.execute(_MARK, {"at": at, **_as_arrays(_worst_of_each(counts))})
    cursor.execute(_COUNT_IN_ROLLOUTS, {"at": at, **_as_arrays(counts)})
    return frozenset(row[1] for row in changed)


def statuses_of(connection: Connection, deployment_ids: Iterable[UUID]) -> frozenset[DeploymentLifecycleStatus]:
    """The statuses these deployments are in: whose handlers a change of theirs wakes."""
    query = "SELECT DISTINCT lifecycle, sub_step FROM endpoints WHERE id = ANY(%s)"
    rows = driver(connection).execute(query, (list(deployment_ids),)).fetchall()
    return frozenset(lifecycle_status(lifecycle, sub_step) for lifecycle, sub_step in rows)


def unstopped(connection: Connection, host: str, route_ids: Iterable[UUID]) -> frozenset[UUID]:
    """Which of these routes are still expected to have a replica on this host."""
    query = "SELECT id FROM routes WHERE id = ANY(%s) AND host = %s AND stopped_at IS NULL"
    return frozenset(row[0] for row in driver(connection).execute(query, (list(route_ids), host)).fetchall())


def request_stop(connection: Connection, route_ids: Sequence[UUID]) -> None:
    """Remember when the replicas of these routes were asked to end, once."""
    _change_leaving(connection, route_ids, "stop_requested_at = coalesce(stop_requested_at, clock_timestamp())")


def record_stopped(connection: Connection, route_ids: Sequence[UUID]) -> frozenset[UUID]:
    """The replicas of these routes are gone: terminating becomes terminated, failed stays failed."""
    return _change_leaving(
        connection,
        route_ids,
        """
        stopped_at = clock_timestamp(), status = CASE status WHEN 'terminating' THEN 'terminated' ELSE status END,
        status_changed_at = CASE status WHEN 'terminating' THEN clock_timestamp() ELSE status_changed_at END
        """,
    )


def _change_leaving(connection: Connection, route_ids: Sequence[UUID], assignments: str) -> frozenset[UUID]:
    """Change routes on their way out, under their deployments' locks. Who may be waiting for their end is marked."""
    if not route_ids:
        return frozenset()
    cursor = driver(connection).cursor()
    ids = list(route_ids)
    owners = cursor.execute("SELECT DISTINCT endpoint_id FROM routes WHERE id = ANY(%s)", (ids,)).fetchall()
    cursor.execute(_LOCK_DEPLOYMENTS, ([row[0] for row in owners],))
    changed = cursor.execute(
        f"""
        UPDATE routes SET {assignments}
         WHERE id = ANY(%s) AND status IN ('terminating', 'failed') AND stopped_at IS NULL
        RETURNING endpoint_id
        """,  # noqa: S608  (both callers pass literals)
        (ids,),
    ).fetchall()
    touched = frozenset(row[0] for row in changed)
    cursor.execute(
        """
        UPDATE endpoints
           SET version = version + 1,
               due_at = CASE WHEN lifecycle IN ('destroying', 'deploying') THEN clock_timestamp() ELSE due_at END
         WHERE id = ANY(%s)
        """,
        (list(touched),),
    )
    return touched


@lru_cache(1024)
def _parsed(spec: str) -> RevisionSpec:
    """A revision never changes, and thousands of routes that are looked at every second have few of them."""
    return RevisionSpec.model_validate_json(spec)


def _rows(connection: Connection, query: str, parameters: tuple[Any, ...]) -> list[RouteRow]:
    return driver(connection).cursor(row_factory=class_row(RouteRow)).execute(query, parameters).fetchall()


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
    for _, endpoint_id, revision_id, _, _, status in changed:
        statuses[endpoint_id, revision_id].append(status)
    return [
        _Count(endpoint_id, revision_id, became.count(RouteStatus.FAILED), became.count(RouteStatus.HEALTHY))
        for (endpoint_id, revision_id), became in statuses.items()
    ]


def _worst_of_each(counts: Sequence[_Count]) -> list[_Count]:
    """One count for each deployment: a deployment remembers the failing starts of one revision."""
    return list({count.endpoint_id: count for count in sorted(counts, key=lambda one: one.failed)}.values())


def _as_arrays(counts: Sequence[_Count]) -> dict[str, Any]:
    return {
        "ids": [count.endpoint_id for count in counts],
        "revision_ids": [count.revision_id for count in counts],
        "failed": [count.failed for count in counts],
        "healthy": [count.healthy for count in counts],
    }
