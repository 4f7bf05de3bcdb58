"""What becomes of the routes of hosts that fell silent, are down or deaf, or are forgotten."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection

from db.locking.statuses import ACTIVE, HAS_LABELS, JUDGED
from db.replicas.host_placement import values
from db.replicas.host_routes import KNOWN, record_stopped
from db.replicas.reports import RouteReport, apply_reports
from domain.model.states import RouteStatus
from domain.replicas.host_choice import EXTERNAL, HostNotFoundError, refuse_to_forget

_DEAF_BESIDE_OTHERS = """
    SELECT name FROM hosts
     WHERE down_since IS NULL AND deaf_since IS NOT NULL
       AND EXISTS (SELECT FROM hosts WHERE down_since IS NULL AND deaf_since IS NULL)
"""


def degrade_silent_routes(connection: Connection, looks: int, limit: int) -> frozenset[UUID]:
    """Degrade up to `limit` running routes of hosts that were silent for `looks` looks; returns their deployments.

    Only their host can probe them, so their last probes are too old to go by. The first probe after that ends it.
    """
    silent = values(connection, "SELECT name FROM hosts WHERE silent_looks >= %s AND down_since IS NULL", (looks,))
    return _report_all(connection, silent, _SILENT, limit)


def fail_routes_of_lost_hosts(connection: Connection, limit: int | None) -> frozenset[UUID]:
    """Fail up to `limit` routes of hosts that are down; returns their deployments."""
    down = values(connection, "SELECT name FROM hosts WHERE down_since IS NOT NULL")
    return _report_all(connection, down, _DOWN, limit)


def fail_routes_that_wait_in_vain(connection: Connection, limit: int | None) -> frozenset[UUID]:
    """Fail up to `limit` routes of deaf hosts that were never healthy, where another host takes new ones; as above.

    Nobody starts or probes them there. What was healthy keeps serving.
    """
    return _report_all(connection, values(connection, _DEAF_BESIDE_OTHERS), _DEAF, limit)


class _Fate(NamedTuple):
    """The end of those routes of hosts that the condition `which` is true of; `why`: since a time of the host's."""

    which: str
    becomes: RouteStatus
    why: str = "has been silent for"
    since: str = "last_seen_at"


_SILENT, _DOWN = _Fate(JUDGED, RouteStatus.DEGRADED), _Fate(ACTIVE, RouteStatus.FAILED)
_ELSEWHERE = f"""
    EXISTS (SELECT FROM hosts h JOIN revisions v ON v.id = r.revision_id
             WHERE h.down_since IS NULL AND h.deaf_since IS NULL AND {HAS_LABELS})
"""
_DEAF = _Fate(
    f"{ACTIVE} AND r.healthy_at IS NULL AND {_ELSEWHERE}",
    RouteStatus.FAILED,
    "has not been answered by Redis for",
    "unasked_since",
)


def _report_all(connection: Connection, hosts: Sequence[str], fate: _Fate, limit: int | None) -> frozenset[UUID]:
    """Report their fate to those routes of these hosts that meet it; blames no revision."""
    if not hosts:  # nearly always; the join reads every route
        return frozenset()
    query = f"""
        SELECT r.id, r.deployment_id, r.status, r.host,
               extract(epoch FROM clock_timestamp() - h.{fate.since})::int AS seconds
          FROM routes r JOIN hosts h ON h.name = r.host
         WHERE r.host = ANY(%s) AND r.stopped_at IS NULL AND r.{fate.which}
         ORDER BY r.id LIMIT %s
    """
    routes = connection.execute(query, (hosts, limit)).fetchall()
    reports = [
        RouteReport(
            route_id,
            deployment_id,
            RouteStatus(status),
            fate.becomes,
            reason=f"its host {host} {fate.why} {seconds} s",
            is_lost=True,
        )
        for route_id, deployment_id, status, host, seconds in routes
        if status in KNOWN
    ]
    return apply_reports(connection, reports)


_COUNT_AS_DOWN = """
    UPDATE hosts SET down_since = clock_timestamp() WHERE name = %s AND down_since IS NULL AND last_seen_at < %s
"""


def count_as_down(connection: Connection, name: str, unseen_since: datetime) -> None:
    """Mark a host as down whose workers were stopped on its own machine, if it was not seen since `unseen_since`.

    If it was the last host, no worker is left whose look would find it silent.
    """
    connection.execute(_COUNT_AS_DOWN, (name, unseen_since))


# somebody removed the row of the host: without one, nothing would ever end its replicas
_COUNTS_AS_DOWN = f"""
    INSERT INTO hosts (name, address, down_since)
    SELECT host, '', clock_timestamp() FROM routes
     WHERE host = %s AND host <> '{EXTERNAL}' AND stopped_at IS NULL LIMIT 1
        ON CONFLICT (name) DO NOTHING
"""


def forget_host(connection: Connection, name: str) -> frozenset[UUID]:
    """Forget a host that will not come back, and count its replicas as stopped; returns their deployments.

    A host without a row is forgotten too, if replicas are on it.

    Raises HostNotFoundError, and WrongStateError for a host that is up.
    """
    connection.execute(_COUNTS_AS_DOWN, (name,))
    rows = values(connection, "SELECT down_since FROM hosts WHERE name = %s FOR UPDATE", (name,))
    if not rows:
        raise HostNotFoundError(f"there is no host {name}; 'rollway hosts' lists those that exist", host=name)
    refuse_to_forget(name, *rows)
    touched = fail_routes_of_lost_hosts(connection, None)
    route_ids = values(connection, "SELECT id FROM routes WHERE host = %s AND stopped_at IS NULL", (name,))
    touched |= record_stopped(connection, route_ids)
    connection.execute("DELETE FROM preparations WHERE host = %s", (name,))
    connection.execute("DELETE FROM hosts WHERE name = %s", (name,))
    return touched
