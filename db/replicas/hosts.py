"""Worker hosts: which of them gets a route that has none, and which have work."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from psycopg import Connection
from psycopg.rows import scalar_row

from db.locking.locked import changed, lock
from db.locking.rows import columns
from db.locking.statuses import ACTIVE, IS_UNPLACED, TO_STOP
from db.placing import Placing, Wanted
from db.replicas.routes import IS_TO_START
from domain.replicas.host_choice import EXTERNAL, hosts_by
from domain.replicas.route_events import RouteLifecycleType

# two statements, since each is planned once: together they would be planned for neither
_UNPLACED = f"FROM routes WHERE {IS_UNPLACED}"

_OLDEST_UNPLACED = f"SELECT deployment_id {_UNPLACED} ORDER BY id LIMIT %s"

_UNPLACED_OF = f"""
    SELECT id, deployment_id, revision_id {_UNPLACED} AND deployment_id = ANY(%s) ORDER BY id LIMIT %s
"""

_PLACED = columns("id uuid, host text")

_PLACE = f"UPDATE routes r SET host = u.host FROM {_PLACED} WHERE r.id = u.id AND r.host IS NULL"

_IS_THERE = "r.stopped_at IS NULL"
_EVERY_HOST = "SELECT name FROM hosts WHERE down_since IS NULL"
_UP = f"SELECT up.name FROM ({_EVERY_HOST} UNION ALL SELECT '{EXTERNAL}') up"

# all that runs is probed, so one of each host is enough to know; EXISTS would be made a join that reads every route
_WITH_REPLICAS = f"""
    {_UP} WHERE (SELECT true FROM routes r
                  WHERE r.host = up.name AND r.{ACTIVE} AND r.started_at IS NOT NULL AND {_IS_THERE} LIMIT 1)
"""

_WITH_WORK: dict[RouteLifecycleType, str] = {
    RouteLifecycleType.START: f"{_UP} WHERE name IN (SELECT r.host FROM routes r WHERE {IS_TO_START} AND {_IS_THERE})",
    RouteLifecycleType.STOP: f"{_UP} WHERE name IN (SELECT r.host FROM routes r WHERE r.{TO_STOP} AND {_IS_THERE})",
    RouteLifecycleType.PROBE: _WITH_REPLICAS,
}
"""Which routes make a look at their host worth while. A host is swept whatever its routes are."""


def place_routes(connection: Connection, limit: int) -> int:
    """Give up to `limit` routes that have no host one that is up; returns how many got one.

    A route is created with its host (`db.cycle.applier`): these are left from when none was up, or too many were new.
    """
    owners = list(set(values(connection, _OLDEST_UNPLACED, (limit,))))
    if not owners:
        return 0
    lock(connection, owners)
    routes = connection.execute(_UNPLACED_OF, (owners, limit)).fetchall()
    hosts = hosts_by(Placing().grounds(connection, [Wanted(owner, revision) for _, owner, revision in routes]))
    placed = [(route_id, host) for (route_id, *_), host in zip(routes, hosts, strict=True) if host]
    if placed:
        connection.execute(_PLACE, _PLACED.arrays(placed))
        changed(connection, owners)
    return len(placed)


def hosts_with_work(
    connection: Connection, kinds: Iterable[RouteLifecycleType]
) -> list[tuple[RouteLifecycleType, str]]:
    """Each look with the hosts that are up and have something for it; EXTERNAL among them when it has.

    All is asked before the first answer is read.
    """
    asked = {kind: connection.execute(_WITH_WORK.get(kind, _EVERY_HOST)) for kind in kinds}
    return [(kind, host) for kind, found in asked.items() for (host,) in found]


def values(connection: Connection, query: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
    """The one column of the rows."""
    return connection.cursor(row_factory=scalar_row).execute(query, parameters).fetchall()
