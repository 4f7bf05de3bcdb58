"""Worker hosts: who is up, which routes they run, and what becomes of those of a host that fell silent."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row

from db.locking.locked import changed, lock
from db.locking.rows import columns
from db.locking.statuses import ACTIVE, JUDGED, TO_STOP
from db.placing import Wanted, grounds_for
from db.replicas.reports import RouteReport, apply_reports
from db.replicas.routes import IS_TO_START, KNOWN, record_stopped
from domain.installation.contract import CONTRACT
from domain.model.states import RouteStatus
from domain.replicas.events import RouteLifecycleType
from domain.replicas.placement import EXTERNAL, hosts_by
from domain.replicas.silence import HostNotFoundError, refuse_to_forget

_SIGN_OF_LIFE = """
    INSERT INTO hosts (name, address, clock_offset_seconds, contract, replica_user) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (name) DO UPDATE
       SET last_seen_at = clock_timestamp(), address = excluded.address,
           clock_offset_seconds = excluded.clock_offset_seconds, contract = excluded.contract,
           replica_user = excluded.replica_user
"""

# two statements, since each is planned once: together they would be planned for neither
_UNPLACED = "FROM routes WHERE host IS NULL AND stopped_at IS NULL"

_OLDEST_UNPLACED = f"SELECT deployment_id {_UNPLACED} ORDER BY id LIMIT %s"

_UNPLACED_OF = f"""
    SELECT id, deployment_id, revision_id {_UNPLACED} AND deployment_id = ANY(%s) ORDER BY id LIMIT %s
"""

_PLACED = columns("id uuid, host text")

_PLACE = f"UPDATE routes r SET host = u.host FROM {_PLACED} WHERE r.id = u.id AND r.host IS NULL"

_HAS_WORK: dict[RouteLifecycleType, str] = {
    RouteLifecycleType.START: f"{IS_TO_START} AND r.stopped_at IS NULL",
    RouteLifecycleType.PROBE: f"r.{ACTIVE} AND r.started_at IS NOT NULL AND r.stopped_at IS NULL",
    RouteLifecycleType.STOP: f"r.{TO_STOP} AND r.stopped_at IS NULL",
}
"""Which routes make a look at their host worth while. A host is swept whatever its routes are."""

# a sign that lies ahead is from before the database's clock was set back: a host that is up gives another one soon
_IS_HEARD = "(last_seen_at BETWEEN clock_timestamp() - make_interval(secs => %(fresh)s) AND clock_timestamp())"

# old and new: the row as it was before this statement, and as it is after it
_COUNT_SILENT_LOOKS = f"""
    UPDATE hosts
       SET silent_looks = CASE WHEN {_IS_HEARD} THEN 0 ELSE silent_looks + 1 END,
           down_since = CASE WHEN {_IS_HEARD} THEN NULL
                             WHEN silent_looks + 1 >= %(looks)s THEN coalesce(down_since, clock_timestamp()) END
     WHERE silent_looks > 0 OR down_since IS NOT NULL OR NOT {_IS_HEARD}
    RETURNING name, old.down_since IS NOT NULL AS was_down, new.down_since IS NOT NULL AS is_down
"""


def show_sign_of_life(
    connection: Connection, host: str, address: str, clock_offset: float = 0.0, replica_user: str | None = None
) -> None:
    """The host is up; its first sign of life makes it known. `clock_offset`: by how many seconds its clock is ahead.

    `replica_user`: as whom its processes run; None: as the worker's own user.
    """
    connection.execute(_SIGN_OF_LIFE, (host, address, clock_offset, CONTRACT, replica_user))


def place_routes(connection: Connection, limit: int) -> int:
    """Give up to `limit` routes that have no host one that is up; returns how many got one.

    A route is created with its host (`db.cycle.routes`): these are left from when none was up, or too many were new.
    """
    owners = list(set(_values(connection, _OLDEST_UNPLACED, (limit,))))
    if not owners:
        return 0
    lock(connection, owners)
    routes = connection.execute(_UNPLACED_OF, (owners, limit)).fetchall()
    hosts = hosts_by(grounds_for(connection, [Wanted(owner, revision) for _, owner, revision in routes]))
    placed = [(route_id, host) for (route_id, *_), host in zip(routes, hosts, strict=True) if host]
    if placed:
        connection.execute(_PLACE, _PLACED.arrays(placed))
        changed(connection, owners)
    return len(placed)


def hosts_with_work(connection: Connection, kind: RouteLifecycleType) -> list[str]:
    """The hosts that are up and have something for this look; EXTERNAL among them when it has."""
    has_work = _HAS_WORK.get(kind)
    if has_work is None:
        return _values(connection, "SELECT name FROM hosts WHERE down_since IS NULL")
    # not EXISTS, which Postgres makes a join that reads every route
    query = f"""
        SELECT name FROM (SELECT name FROM hosts WHERE down_since IS NULL UNION ALL SELECT '{EXTERNAL}') up
         WHERE (SELECT true FROM routes r WHERE r.host = up.name AND {has_work} LIMIT 1)
    """
    return _values(connection, query)


def look_at_signs_of_life(
    connection: Connection, fresh_seconds: float, looks: int
) -> tuple[frozenset[str], frozenset[str]]:
    """Count the looks that found a host silent: (hosts that are down from now on, hosts that are back).

    Looks are counted, not seconds: while nobody looked, nobody could be heard, so that Postgres or all workers being
    away for a while does not make every host silent.
    """
    rows = connection.execute(_COUNT_SILENT_LOOKS, {"fresh": fresh_seconds, "looks": looks}).fetchall()
    down = frozenset(name for name, was_down, is_down in rows if is_down and not was_down)
    return down, frozenset(name for name, was_down, is_down in rows if was_down and not is_down)


def degrade_silent_routes(connection: Connection, looks: int, limit: int) -> frozenset[UUID]:
    """Degrade up to `limit` running routes of hosts that were silent for `looks` looks; returns their deployments.

    Only their host can probe them, so their last probes are too old to go by. The first probe after that ends it.
    """
    silent = _values(connection, "SELECT name FROM hosts WHERE silent_looks >= %s AND down_since IS NULL", (looks,))
    return _report_all(connection, silent, JUDGED, RouteStatus.DEGRADED, limit)


def fail_routes_of_lost_hosts(connection: Connection, limit: int | None) -> frozenset[UUID]:
    """Fail up to `limit` routes of hosts that are down; returns their deployments."""
    down = _values(connection, "SELECT name FROM hosts WHERE down_since IS NOT NULL")
    return _report_all(connection, down, ACTIVE, RouteStatus.FAILED, limit)


def _report_all(
    connection: Connection, hosts: Sequence[str], which: str, becomes: RouteStatus, limit: int | None
) -> frozenset[UUID]:
    """Report those routes of these hosts that the condition `which` is true of; blames no revision."""
    if not hosts:  # nearly always; the join reads every route
        return frozenset()
    query = f"""
        SELECT r.id, r.deployment_id, r.status, r.host,
               extract(epoch FROM clock_timestamp() - h.last_seen_at)::int AS silent_seconds
          FROM routes r JOIN hosts h ON h.name = r.host
         WHERE r.host = ANY(%s) AND r.stopped_at IS NULL AND r.{which}
         ORDER BY r.id LIMIT %s
    """
    routes = connection.execute(query, (hosts, limit)).fetchall()
    reports = [
        RouteReport(
            route_id,
            deployment_id,
            RouteStatus(status),
            becomes,
            reason=f"its host {host} has been silent for {silent} s",
        )
        for route_id, deployment_id, status, host, silent in routes
        if status in KNOWN
    ]
    return apply_reports(connection, reports, blame_revisions=False)


# somebody removed its row, and nobody else would ever end what it ran
_COUNTS_AS_DOWN = f"""
    INSERT INTO hosts (name, address, down_since)
    SELECT host, '', clock_timestamp() FROM routes
     WHERE host = %s AND host <> '{EXTERNAL}' AND stopped_at IS NULL LIMIT 1
        ON CONFLICT (name) DO NOTHING
"""


def forget_host(connection: Connection, name: str) -> frozenset[UUID]:
    """Forget a host that never comes back, its replicas taken as stopped; returns their deployments.

    One that nobody knows, but replicas are on, is forgotten too.

    Raises HostNotFoundError, and WrongStateError for a host that is up.
    """
    connection.execute(_COUNTS_AS_DOWN, (name,))
    found = _values(connection, "SELECT down_since FROM hosts WHERE name = %s FOR UPDATE", (name,))
    if not found:
        raise HostNotFoundError(f"there is no host {name}; 'rollway hosts' lists those that exist", host=name)
    refuse_to_forget(name, *found)
    touched = fail_routes_of_lost_hosts(connection, None)
    left = _values(connection, "SELECT id FROM routes WHERE host = %s AND stopped_at IS NULL", (name,))
    touched |= record_stopped(connection, left)
    connection.execute("DELETE FROM hosts WHERE name = %s", (name,))
    return touched


def _values(connection: Connection, query: str, parameters: Sequence[object] = ()) -> list[Any]:
    """The one column of the rows."""
    return connection.cursor(row_factory=scalar_row).execute(query, parameters).fetchall()
