"""Reports on routes, in bulk: written once, their deployments marked, failures counted where they count."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection

from db.connection.arrays import columns, named_row
from db.locking.row_locks import ALWAYS, count_change, lock
from db.locking.statuses import ACTIVE, HAS_LENT, IS_TARGET, start_failures
from db.outbox import write_events
from domain.model.deployment import StartFailures
from domain.model.states import RouteStatus
from domain.outbox.cloud_events import CloudEvent, CloudEventType
from domain.replicas.diagnosis import failure_in_short
from domain.replicas.sleep import SleepStep
from domain.replicas.status_reports import StatusChange, StatusChanges, counters_after, failures_after, news_of


@dataclass(frozen=True, slots=True)
class RouteReport:
    """A report on a route. Nothing happens when its status is no longer `was`: someone else was faster.

    Nor does a report bring a route back that is on its way out or gone.

    `address` and `handle` come with the start of its replica; `reason` and `log_tail` with a change of status.
    `is_lost`: its host is to blame, so its end counts as no failed start of its revision, and against no budget.
    `is_late`: no probe was answered in time, so it may be busy: proxies are asked whether it answers callers.
    `begins_warm_up`: its health check has succeeded; `is_warm`: the requests of its warm-up were answered fast.
    `sleep`: it begins to sleep, or wakes; it does not begin where it is needed meanwhile.
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
    is_lost: bool = False
    is_late: bool = False
    begins_warm_up: bool = False
    is_warm: bool = False
    sleep: SleepStep = SleepStep.NONE


_REPORTS = columns("""
    route_id uuid, was text, status text, streak int4, reason text, log_tail text, address text, handle text,
    is_late bool, begins_warm_up bool, is_warm bool, sleep text
""")
_report_values: Callable[[RouteReport], tuple[object, ...]] = attrgetter(*_REPORTS.types)

_REPORT = f"""
    WITH clock AS MATERIALIZED (SELECT clock_timestamp() AS at)
    UPDATE routes r
       SET status = u.status, probe_streak = u.streak,
           status_changed_at = CASE WHEN u.status <> r.status THEN clock.at ELSE r.status_changed_at END,
           status_reason = CASE WHEN u.status <> r.status OR u.handle IS NOT NULL THEN coalesce(u.reason, '')
                                WHEN u.status = 'provisioning' THEN coalesce(u.reason, r.status_reason)
                                ELSE r.status_reason END,
           traffic_status = CASE WHEN u.status = 'failed' THEN 'inactive' ELSE r.traffic_status END,
           kept_until = CASE WHEN u.status = r.status THEN r.kept_until
                             WHEN u.status = 'unhealthy' AND u.is_late THEN clock.at END,
           log_tail = coalesce(u.log_tail, r.log_tail), address = coalesce(u.address, r.address),
           replica_handle = coalesce(u.handle, r.replica_handle),
           started_at = coalesce(r.started_at, CASE WHEN coalesce(u.address, u.handle) IS NOT NULL THEN clock.at END),
           healthy_at = coalesce(r.healthy_at, CASE WHEN u.status = 'healthy' THEN clock.at END),
           warm_up_started_at = coalesce(r.warm_up_started_at, CASE WHEN u.begins_warm_up THEN clock.at END),
           warmed_at = coalesce(r.warmed_at, CASE WHEN u.is_warm THEN clock.at END),
           asleep_at = CASE u.sleep WHEN 'begins' THEN clock.at WHEN 'over' THEN NULL ELSE r.asleep_at END,
           slept_at = CASE WHEN u.sleep = 'answered' AND r.parked_until IS NOT NULL THEN clock.at
                           WHEN u.sleep IN ('begins', 'wakes', 'over') THEN NULL ELSE r.slept_at END,
           wake_started_at = CASE WHEN u.sleep = 'wakes' THEN clock.at
                                  WHEN u.sleep IN ('begins', 'answered') THEN NULL ELSE r.wake_started_at END
      FROM {_REPORTS}, clock, deployments d, revisions v
     WHERE r.id = u.route_id AND r.status = u.was AND r.{ACTIVE} AND d.id = r.deployment_id AND v.id = r.revision_id
       AND CASE u.sleep WHEN 'begins' THEN r.parked_until > clock.at AND NOT {IS_TARGET}
                        WHEN 'answered' THEN r.asleep_at IS NOT NULL
                        WHEN '' THEN true ELSE NOT {HAS_LENT} END
    RETURNING r.id, r.deployment_id, r.revision_id, u.was, r.status, r.status_reason AS reason,
              r.log_tail, d.name AS deployment, v.name AS revision, d.rollout_id, r.host, clock.at,
              u.sleep = 'answered' AND {HAS_LENT} AS has_lent
"""

_COUNTERS = """
    SELECT d.id, d.failed_revision_id, d.failed_starts, d.last_failed_at, d.came_up_at, d.short_lives,
           o.id AS rollout_id, o.to_revision_id, o.failed_routes, o.last_progress_at
      FROM deployments d LEFT JOIN rollouts o ON o.id = d.rollout_id
     WHERE d.id = ANY(%s)
"""

_FAILURES = columns("""
    id uuid, revision_id uuid, in_a_row int4, last_at timestamptz, came_up_at timestamptz, short_lives int4
""")

_failures_values: Callable[[StartFailures], tuple[object, ...]] = attrgetter(*list(_FAILURES.types)[1:])

_COUNT_FAILED_STARTS = f"""
    UPDATE deployments d
       SET failed_revision_id = u.revision_id, failed_starts = u.in_a_row, last_failed_at = u.last_at,
           came_up_at = u.came_up_at, short_lives = u.short_lives
      FROM {_FAILURES}
     WHERE d.id = u.id
"""

_PROGRESS = columns("id uuid, failed_routes int4, last_progress_at timestamptz, last_failure text")

_COUNT_IN_ROLLOUTS = f"""
    UPDATE rollouts o
       SET failed_routes = u.failed_routes, last_progress_at = u.last_progress_at,
           last_failure = coalesce(u.last_failure, o.last_failure)
      FROM {_PROGRESS}
     WHERE o.id = u.id
"""


class ReportedRoute(NamedTuple):
    """A route after a report: its status before and now, the reason, its names and ids, and the time.

    `has_lent`: its `sleep` was just answered, and others may have its devices.
    """

    id: UUID
    deployment_id: UUID
    revision_id: UUID
    was: str
    status: str
    reason: str
    log_tail: str | None
    deployment: str
    revision: str
    rollout_id: UUID | None
    host: str | None
    at: datetime
    has_lent: bool


class _Counters(NamedTuple):
    """The counters of a deployment and of its running rollout, if there is one."""

    id: UUID
    failed_revision_id: UUID
    failed_starts: int
    last_failed_at: datetime
    came_up_at: datetime | None
    short_lives: int
    rollout_id: UUID | None
    to_revision_id: UUID
    failed_routes: int
    last_progress_at: datetime

    @property
    def start_failures(self) -> StartFailures | None:
        """None when no start has failed yet."""
        return start_failures(
            self.failed_revision_id, self.failed_starts, self.last_failed_at, self.came_up_at, self.short_lives
        )


def apply_reports(connection: Connection, reports: Sequence[RouteReport]) -> frozenset[UUID]:
    """Do as `record_reports`, and return the ids of the deployments whose routes changed status."""
    return frozenset(route.deployment_id for route in record_reports(connection, reports))


def record_reports(connection: Connection, reports: Sequence[RouteReport]) -> tuple[ReportedRoute, ...]:
    """Write reports, mark the deployments whose routes changed status, and return those routes."""
    if not reports:
        return ()
    lock(connection, {report.deployment_id for report in reports})
    cursor = connection.cursor(row_factory=named_row(ReportedRoute))
    cursor.execute(_REPORT, _REPORTS.arrays(map(_report_values, reports)))
    reported = cursor.fetchall()
    if lent := {route.deployment_id for route in reported if route.has_lent}:
        count_change(connection, lent, mark=ALWAYS)
    changed = tuple(route for route in reported if route.was != route.status)
    if not changed:
        return ()
    lost = {report.route_id for report in reports if report.is_lost}
    news: dict[UUID, list[StatusChange]] = defaultdict(list)
    for route in changed:
        status = RouteStatus(route.status)
        why = "" if status is RouteStatus.HEALTHY else failure_in_short(route.reason, route.log_tail)
        news[route.deployment_id].append(
            StatusChange(route.revision_id, RouteStatus(route.was), status, why, route.id in lost)
        )
    count_change(connection, news.keys(), mark=ALWAYS)
    counting = {owner: news_of(statuses) for owner, statuses in news.items()}
    _count(connection, counting, changed[0].at)
    write_events(connection, [_failed(route) for route in changed if route.status == RouteStatus.FAILED])
    return changed


def _failed(route: ReportedRoute) -> CloudEvent:
    return CloudEvent(CloudEventType.REPLICA_FAILED, route.deployment_id, "workers", route.reason, route_id=route.id)


def _count(connection: Connection, news: Mapping[UUID, Sequence[StatusChanges]], at: datetime) -> None:
    """Failed starts of deployments, and failures and progress of their rollouts, as the domain counts them."""
    failing, rows = [], []
    for counters in connection.cursor(row_factory=named_row(_Counters)).execute(_COUNTERS, (list(news),)).fetchall():
        after = failures_after(counters.start_failures, news[counters.id], at)
        if after is not None and after != counters.start_failures:
            failing.append((counters.id, *_failures_values(after)))
        rows += [
            (
                counters.rollout_id,
                *counters_after(counters.failed_routes, counters.last_progress_at, item, at),
                item.last_failure,
            )
            for item in news[counters.id]
            if counters.rollout_id and item.revision_id == counters.to_revision_id
        ]
    if failing:
        connection.execute(_COUNT_FAILED_STARTS, _FAILURES.arrays(failing))
    if rows:
        connection.execute(_COUNT_IN_ROLLOUTS, _PROGRESS.arrays(rows))
