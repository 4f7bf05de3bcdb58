"""Routes as a host sees them: which replicas are to be started, probed and stopped, and that one is gone."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row, scalar_row

from db.connection.arrays import columns
from db.locking.row_locks import count_change, lock
from db.locking.statuses import ACTIVE, IS_NEEDED, TO_STOP
from db.locking.upstream import SPOKEN
from domain.devices.needs import Capacity
from domain.model.states import Lifecycle, RouteStatus
from domain.replicas.sleep import ParkedRoute
from domain.revisions.revision import RevisionSpec, StoredSpec, stored_spec
from domain.text.errors import RouteNotFoundError
from domain.traffic.tls import ReplicaTls
from domain.traffic.wire import ReplicaWire, known_wire, replica_wire

_PARKED_AT = "CASE WHEN r.parked_until > clock_timestamp() THEN coalesce(r.parked_at, r.created_at) END"

_ROUTE = f"""
    SELECT r.id, r.deployment_id, d.name AS deployment, v.name AS revision, v.spec::text, v.is_walled, r.status,
           r.address, r.start_tries, r.started_at, r.probe_streak, r.drain_started_at, r.out_of_traffic_at,
           r.stop_requested_at, r.warm_up_started_at, r.warmed_at, r.status_reason AS reason,
           {_PARKED_AT} AS parked_at, r.let_go_at, {IS_NEEDED} AS is_needed,
           r.asleep_at, r.slept_at, r.wake_started_at, r.devices, {SPOKEN}
      FROM routes r JOIN deployments d ON d.id = r.deployment_id JOIN revisions v ON v.id = r.revision_id
"""


def _on_host(condition: str) -> str:
    return f"{_ROUTE} WHERE r.host = %s AND r.stopped_at IS NULL AND {condition}"


IS_TO_START = """
    r.status = 'provisioning' AND r.started_at IS NULL AND coalesce(r.next_start_at <= clock_timestamp(), true)
"""

# one of each deployment, then the next of each; of one deployment those first that were not tried yet
_TO_START = _on_host(f"""
    {IS_TO_START} AND r.id <> ALL(%s)
    AND (v.spec ->> 'prepare' IS NULL
         OR EXISTS (SELECT FROM preparations p WHERE p.revision_id = v.id AND p.host = r.host AND p.state = 'done'))
    ORDER BY row_number() OVER (PARTITION BY r.deployment_id ORDER BY r.next_start_at NULLS FIRST, r.id),
             r.next_start_at NULLS FIRST, r.id
    LIMIT %s
""")
_STARTING = _on_host("r.status = 'provisioning' AND r.started_at IS NOT NULL ORDER BY r.id")
_RUNNING = _on_host(f"r.{ACTIVE} AND r.started_at IS NOT NULL ORDER BY r.id")
_TO_STOP = _on_host(f"r.{TO_STOP} ORDER BY row_number() OVER (PARTITION BY r.deployment_id ORDER BY r.id), r.id")
_BY_ID = f"{_ROUTE} WHERE r.id = %s"

_POSTPONED = columns("route_id uuid, why text, pause interval")

_POSTPONE = f"""
    UPDATE routes r
       SET start_tries = start_tries + 1, next_start_at = clock_timestamp() + u.pause, status_reason = u.why
      FROM {_POSTPONED} WHERE r.id = u.route_id AND r.status = 'provisioning' AND r.started_at IS NULL
    RETURNING r.deployment_id
"""

KNOWN: frozenset[str] = frozenset(RouteStatus)
"""The words of this release; a route with another one is left to the release that wrote it."""

_WAITING_FOR_ENDS = frozenset({Lifecycle.SCALING, Lifecycle.DEPLOYING, Lifecycle.DESTROYING})
"""States whose handlers may be waiting until a replica is gone."""


@dataclass(frozen=True, slots=True)
class PostponedStart:
    """A start without an answer of its runtime: the reason, and the pause before the next try."""

    route_id: UUID
    why: str
    pause: timedelta


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A route with the facts that its runtime needs. `started_at`: when its replica was started.

    `start_tries`: the starts in a row without an answer of its runtime. `unreadable`: the part of its revision that
    this release cannot read; its spec then has only what ends a replica. `is_walled`: as in `ReplicaRequest`.
    `warm_up_started_at`: when its warm-up began, if it has one; `warmed_at`: when the warm-up ended. `devices`: those
    that its replica owns, or has lent; None for none. `parked_at`: when it was parked, if it is.
    `let_go_at`: when every live proxy knew that.
    """

    id: UUID
    deployment_id: UUID
    deployment: str
    revision: str
    spec: RevisionSpec
    is_walled: bool
    unreadable: str | None
    status: RouteStatus
    address: str | None
    start_tries: int
    started_at: datetime | None
    probe_streak: int
    drain_started_at: datetime | None
    out_of_traffic_at: datetime | None
    stop_requested_at: datetime | None
    warm_up_started_at: datetime | None
    warmed_at: datetime | None
    reason: str
    parked_at: datetime | None
    let_go_at: datetime | None
    is_needed: bool
    asleep_at: datetime | None
    slept_at: datetime | None
    wake_started_at: datetime | None
    wire: ReplicaWire
    devices: Capacity | None = None

    @property
    def parked(self) -> ParkedRoute:
        """The facts that decide about its sleep."""
        sleep = (self.asleep_at, self.slept_at, self.wake_started_at)
        return ParkedRoute(self.status, self.is_needed, self.parked_at, self.let_go_at, *sleep)

    @property
    def tls(self) -> ReplicaTls | None:
        """None: its replica is asked in clear text."""
        return self.wire.tls


def routes_to_start(connection: Connection, host: str, limit: int, but: Iterable[UUID] = ()) -> list[RouteRow]:
    """Provisioning routes of a host whose replica nobody has started yet, and whose next try is due.

    The host is prepared for their revisions, where these want that.

    Deployments take turns, so that one whose replicas cannot be started holds up no other.
    """
    return _rows(connection, _TO_START, (host, list(but), limit))


def postpone_starts(connection: Connection, postponed: Sequence[PostponedStart]) -> None:
    """Remember why the replicas of these routes were not started, and when each is tried again."""
    lock(connection, _owners(connection, [start.route_id for start in postponed]))
    rows = [(start.route_id, start.why, start.pause) for start in postponed]
    cursor = connection.cursor(row_factory=scalar_row).execute(_POSTPONE, _POSTPONED.arrays(rows))
    count_change(connection, frozenset(cursor.fetchall()))


def running_routes(connection: Connection, host: str, *, only_starting: bool = False) -> list[RouteRow]:
    """Live routes of a host whose replica was started: those to probe, or of them those that were never healthy yet."""
    return _rows(connection, _STARTING if only_starting else _RUNNING, (host,))


def warming_among(connection: Connection, route_ids: Sequence[UUID]) -> frozenset[UUID]:
    """Read which of these routes have a replica that is still to be warmed up, sent to sleep, or woken."""
    query = """
        SELECT id FROM routes
         WHERE id = ANY(%s) AND status = 'provisioning' AND (warmed_at IS NULL OR asleep_at IS NOT NULL)
    """
    return frozenset(connection.cursor(row_factory=scalar_row).execute(query, (list(route_ids),)).fetchall())


def routes_to_stop(connection: Connection, host: str) -> list[RouteRow]:
    """Routes of a host on their way out, and failed ones, whose replica is not known to be gone; one of each first."""
    return _rows(connection, _TO_STOP, (host,))


def lock_route(connection: Connection, route_id: UUID) -> RouteRow:
    """One route, its deployment locked before it is read. Raises RouteNotFoundError."""
    lock(connection, _owners(connection, [route_id]))
    route = next(iter(_rows(connection, _BY_ID, (route_id,))), None)
    if route is None:
        raise RouteNotFoundError(
            f"there is no route {route_id}; 'rollway routes' lists those that exist", route=route_id
        )
    return route


def expected_on(connection: Connection, host: str, route_ids: Iterable[UUID]) -> dict[UUID, bool]:
    """Whether each of these routes is expected to have a replica on this host; one without a row is left out.

    A command that prepares the host is one too, by the id of its preparation.
    """
    query = """
        SELECT id, coalesce(host = %(host)s, false) AND stopped_at IS NULL FROM routes WHERE id = ANY(%(ids)s)
        UNION ALL SELECT id, host = %(host)s AND state = 'running' FROM preparations WHERE id = ANY(%(ids)s)
    """
    return dict(connection.execute(query, {"host": host, "ids": list(route_ids)}).fetchall())


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
    """Change routes on their way out, under their deployments' locks. Deployments that may wait for it are marked."""
    if not route_ids:
        return frozenset()
    cursor = connection.cursor(row_factory=scalar_row)
    lock(connection, _owners(connection, route_ids))
    rows = cursor.execute(
        f"""
        UPDATE routes SET {assignments}
         WHERE id = ANY(%s) AND {TO_STOP} AND stopped_at IS NULL
        RETURNING deployment_id
        """,
        (list(route_ids),),
    ).fetchall()
    touched = frozenset(rows)
    count_change(connection, touched, mark=_WAITING_FOR_ENDS)
    return touched


def _owners(connection: Connection, route_ids: Sequence[UUID]) -> list[UUID]:
    query = "SELECT DISTINCT deployment_id FROM routes WHERE id = ANY(%s)"
    return connection.cursor(row_factory=scalar_row).execute(query, (list(route_ids),)).fetchall()


@lru_cache(1024)
def _parsed(spec: str) -> StoredSpec:
    """A revision never changes, and thousands of routes that are looked at every second have few of them."""
    return stored_spec(spec)


def _rows(connection: Connection, query: str, parameters: tuple[Any, ...]) -> list[RouteRow]:
    """The rows whose status this release knows."""
    rows = connection.cursor(row_factory=dict_row).execute(query, parameters).fetchall()
    return [_route_row(**row) for row in rows if row["status"] in KNOWN]


def _route_row(spec: str, status: str, wire: Any, ca: str | None, **columns: Any) -> RouteRow:  # noqa: ANN401
    """Make a row; the other columns as they are."""
    parsed, spoken = _parsed(spec), replica_wire(columns["deployment"], known_wire(wire), ca)
    return RouteRow(spec=parsed.spec, unreadable=parsed.unreadable, status=RouteStatus(status), wire=spoken, **columns)
