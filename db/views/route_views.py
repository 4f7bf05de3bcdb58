"""The reads for people: replicas, running and gone, as frozen values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection
from psycopg.rows import DictRow, dict_row

from db.locking.statuses import PRESENT
from domain.model.deployment import Route
from domain.model.states import RouteStatus, TrafficStatus
from domain.replicas.diagnosis import failure_in_short
from domain.text.errors import UnreadableError

_ROUTES = """
    SELECT r.id, r.deployment_id, v.name AS revision, r.revision_id, r.status, r.traffic_status AS traffic, r.address,
           r.host, r.status_reason AS reason, r.log_tail, r.created_at, r.status_changed_at, r.stopped_at,
           r.parked_until, r.kept_until, r.drain_started_at,
           CASE WHEN r.status = 'terminating' AND r.stop_requested_at IS NULL THEN l.under_way END AS answers_under_way
      FROM routes r JOIN revisions v ON v.id = r.revision_id LEFT JOIN drain_looks l ON l.route_id = r.id
"""

_PRESENT = f"{_ROUTES} WHERE r.deployment_id = ANY(%s) AND r.{PRESENT} ORDER BY r.id"

_NEWEST = f"{_ROUTES} WHERE r.deployment_id = %s ORDER BY r.id DESC LIMIT %s"

_LAST_FAILED = f"{_ROUTES} WHERE r.deployment_id = %s AND r.status = 'failed' ORDER BY r.status_changed_at DESC LIMIT 1"

_OF_NAME = f"""
    {_ROUTES}
     WHERE r.id = ANY(%s) AND r.deployment_id IN (SELECT id FROM deployments WHERE name = %s)
     ORDER BY r.id
"""

_ABBREVIATED = f"""
    {_ROUTES}
     WHERE replace(r.id::text, '-', '') LIKE ANY(ARRAY[%(id)s || '%%', '%%' || %(id)s])
       AND (%(names)s::text[] IS NULL OR r.deployment_id IN (SELECT id FROM deployments WHERE name = ANY(%(names)s)))
     ORDER BY r.id DESC
     LIMIT 10
"""


_CAME_UP = """
    (EXISTS (SELECT FROM routes WHERE revision_id = v.id AND healthy_at IS NOT NULL)
     OR EXISTS (SELECT FROM rollouts WHERE to_revision_id = v.id AND outcome = 'completed'))
"""

ONLY_FAILED = f"""
    NOT {_CAME_UP} AND EXISTS (SELECT FROM routes WHERE revision_id = v.id AND status = 'failed')
"""
"""Whether replicas of the revision `v` have failed, and none has ever come up."""

_FAILED_LAST = """
    SELECT status_reason, log_tail FROM routes
     WHERE revision_id = %s AND status = 'failed' ORDER BY status_changed_at DESC LIMIT 1
"""

_KNOWN: frozenset[str] = frozenset(RouteStatus)


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteView(Route):
    """A route with all that people see of it.

    `host`: where its replica runs; None until one is chosen. `reason` says why it got its status; `log_tail` comes with
    a failure. `answers_under_way`: of one that drains, as all live proxies told; None where that is not known.
    """

    deployment_id: UUID
    revision: str
    address: str | None
    host: str | None
    reason: str
    log_tail: str | None
    stopped_at: datetime | None
    drain_started_at: datetime | None
    answers_under_way: int | None


@dataclass(frozen=True, slots=True)
class FailingStart:
    """Starts that fail in a row. `cause`: of the last one; `has_come_up`: whether one of the revision ever was well."""

    revision: str
    in_a_row: int
    cause: str
    has_come_up: bool


def present_routes(connection: Connection[Any], deployment_ids: Iterable[UUID]) -> list[RouteView]:
    """The routes of these deployments that are not gone yet, oldest first."""
    return _read_routes(connection, _PRESENT, (list(deployment_ids),))


def all_routes(connection: Connection[Any], deployment_id: UUID, limit: int) -> list[RouteView]:
    """The newest routes of a deployment, those that are gone too; oldest first."""
    return _read_routes(connection, _NEWEST, (deployment_id, limit))[::-1]


def last_failed_route(connection: Connection[Any], deployment_id: UUID) -> RouteView | None:
    """The replica that failed last, with the last lines of its log."""
    return next(iter(_read_routes(connection, _LAST_FAILED, (deployment_id,))), None)


def failing_start(connection: Connection[Any], deployment_id: UUID, failed_starts: int) -> FailingStart | None:
    """Say why the last start failed, where the starts of now fail."""
    if not failed_starts or (failed := last_failed_route(connection, deployment_id)) is None:
        return None
    why = failure_in_short(failed.reason, failed.log_tail)
    return FailingStart(failed.revision, failed_starts, why, _has_come_up(connection, failed.revision_id))


def why_it_only_failed(connection: Connection[Any], revision_id: UUID) -> str:
    """Say why the last replica of the revision failed, where none of it has ever come up; empty otherwise."""
    failed = connection.execute(_FAILED_LAST, (revision_id,)).fetchone()
    return "" if failed is None or _has_come_up(connection, revision_id) else failure_in_short(*failed)


def _has_come_up(connection: Connection[Any], revision_id: UUID) -> bool:
    ((came_up,),) = connection.execute(f"SELECT {_CAME_UP} FROM revisions v WHERE v.id = %s", (revision_id,))
    return bool(came_up)


def routes_of(connection: Connection[Any], deployment: str, ids: Sequence[UUID]) -> list[RouteView]:
    """Replicas of these ids, running or gone, of deployments that have or had this name."""
    return _read_routes(connection, _OF_NAME, (ids, deployment))


def routes_abbreviated(
    connection: Connection[Any], digits: str, deployments: Sequence[str] | None = None
) -> list[RouteView]:
    """Routes whose id, without hyphens, begins or ends with these hexadecimal digits; 10 at most.

    `deployments`: only those of deployments with such a name.
    """
    return _read_routes(connection, _ABBREVIATED, {"id": digits, "names": deployments})


def _read_routes(
    connection: Connection[Any], query: LiteralString, parameters: dict[str, Any] | Sequence[Any]
) -> list[RouteView]:
    return list(map(_route, connection.cursor(row_factory=dict_row).execute(query, parameters)))


def _route(row: DictRow) -> RouteView:
    """A status that only a newer release understands is shown as degraded, and named: nothing is known of it here."""
    status, reason = row["status"], row["reason"]
    if status not in _KNOWN:
        status, reason = RouteStatus.DEGRADED, f"{UnreadableError.of('status of a replica', status)}; {reason}"
    values = {"status": RouteStatus(status), "reason": reason, "traffic": TrafficStatus(row["traffic"])}
    return RouteView(**{**row, **values})
