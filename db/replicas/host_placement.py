"""Gives each new replica its host, by `domain.replicas.host_choice`, and finds the hosts that have work."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row

from db.connection.arrays import UUIDS, Array, columns, named_row
from db.devices import as_json, locked_ledger_for
from db.locking.row_locks import count_change, lock
from db.locking.statuses import ACTIVE, IS_LACKED, IS_PLACEABLE, TO_STOP
from db.replicas.host_routes import IS_TO_START
from domain.devices.needs import Needs
from domain.model.lifecycle_events import RouteLifecycleType
from domain.replicas.host_choice import EXTERNAL, FRESH_SECONDS, HostUp, PlacingGrounds, Unplaced, placements
from domain.revisions.host_labels import HOST, Labels

MOST_AT_ONCE = 500
"""The most replicas placed in one transaction, since others wait for their deployments meanwhile."""

_HOSTS_UP = f"""
    SELECT name, clock_offset_seconds, deaf_since IS NOT NULL, drained_at IS NOT NULL,
           coalesce(least(last_seen_at, unasked_since) < clock_timestamp() - interval '{FRESH_SECONDS} s', false),
           nullif(labels, '{{}}')
      FROM hosts WHERE down_since IS NULL
"""

_NEEDS = f"""
    SELECT v.id, v.spec->>'runtime' = 'external' AS is_external,
           nullif(v.spec->'hosts', '{{}}') AS labels, coalesce(v.spec->>'spread', '{HOST}') AS spread,
           ARRAY(SELECT DISTINCT s.host FROM host_secrets s WHERE {IS_LACKED}) AS lacking,
           nullif(v.spec->'needs', '{{}}') AS needs
      FROM revisions v WHERE v.id = ANY(%b)
"""

# replicas are counted only where there is a choice: Postgres asks for the hosts first, and then reads no route
_COUNTS = f"{ACTIVE} AND host IS NOT NULL AND (SELECT count(*) > 1 FROM hosts WHERE down_since IS NULL)"

_OF_DEPLOYMENT = f"""
    SELECT deployment_id, host, count(*)::int FROM routes
     WHERE {_COUNTS} AND id <> ALL(%b) AND deployment_id = ANY(%b) GROUP BY deployment_id, host
"""

_OF_ALL = f"SELECT host, count(*)::int FROM routes WHERE {_COUNTS} GROUP BY host"

_COUNTED_SECONDS = 5.0


def hosts_up(connection: Connection[Any]) -> dict[str, HostUp]:
    """The hosts that are up, by name; `takers` says which of them get new replicas."""
    return _by_name(connection.execute(_HOSTS_UP).fetchall())


def _by_name(rows: Iterable[tuple[Any, ...]]) -> dict[str, HostUp]:
    return {name: HostUp(*host) for name, *host in rows}


class NeedsHost(Protocol):
    """A new replica, by the ids of its deployment and of its revision."""

    @property
    def deployment_id(self) -> UUID: ...
    @property
    def revision_id(self) -> UUID: ...


class Wanted(NamedTuple):
    """A replica without a host."""

    deployment_id: UUID
    revision_id: UUID


class _Needs(NamedTuple):
    """The needs of a revision of its host. One that is not there needs nothing: Postgres refuses its routes."""

    id: UUID
    is_external: bool = False
    labels: Labels | None = None
    spread: str = HOST
    lacking: Sequence[str] = ()
    needs: Needs | None = None


@dataclass(slots=True)
class Placing:
    """Knows how full hosts are. Replicas of the whole fleet are counted every few seconds, not for each new one.

    In between, what is placed here is added; what others place is seen at the next count.
    """

    _of_all: Counter[str] = field(default_factory=Counter)
    _counted_at: float = float("-inf")

    def grounds(
        self, connection: Connection, replicas: Sequence[NeedsHost], leaving: Collection[UUID] = ()
    ) -> PlacingGrounds:
        """Read what the hosts of these replicas, whose deployments are locked, are chosen by.

        Those beyond the first MOST_AT_ONCE must wait. Routes that are `leaving` count as gone already.
        """
        if not replicas:
            return PlacingGrounds()
        now = replicas[:MOST_AT_ONCE]
        needs = connection.cursor(binary=True, row_factory=named_row(_Needs))
        needs.execute(_NEEDS, (_each_once(want.revision_id for want in now),))
        hosts = connection.execute(_HOSTS_UP)  # fetched with the others, so that all of them take one way to Postgres
        of_deployment = connection.execute(
            _OF_DEPLOYMENT, (UUIDS([*leaving]), _each_once(want.deployment_id for want in now))
        )
        if monotonic() - self._counted_at > _COUNTED_SECONDS:
            self._of_all = Counter(dict(connection.execute(_OF_ALL).fetchall()))
            self._counted_at = monotonic()
        by_id = {revision.id.int: revision for revision in needs.fetchall()}  # numbers are found faster than ids
        unplaced = [_unplaced(want, by_id.get(want.revision_id.int, _Needs(want.revision_id))) for want in now]
        own = {(deployment, host): count for deployment, host, count in of_deployment.fetchall()}
        grounds = PlacingGrounds(unplaced, _by_name(hosts.fetchall()), own, self._of_all, len(replicas) - len(now))
        if not any(each.needs for each in unplaced):
            return grounds
        return replace(grounds, ledger=locked_ledger_for(connection, grounds))

    def add(self, hosts: Iterable[str | None]) -> None:
        """Count these hosts of new replicas."""
        self._of_all.update(host for host in hosts if host)


def _each_once(ids: Iterable[UUID]) -> Array:
    return UUIDS([*{each.int: each for each in ids}.values()])


def _unplaced(want: NeedsHost, needs: _Needs) -> Unplaced:
    return Unplaced(want.deployment_id, needs.is_external, needs.lacking, needs.labels, needs.spread, needs.needs)


# two statements, since each is planned once: together they would be planned for neither
_UNPLACED = f"FROM routes r WHERE {IS_PLACEABLE}"

_OLDEST_UNPLACED = f"SELECT deployment_id {_UNPLACED} ORDER BY id LIMIT %s"

_UNPLACED_OF = f"""
    SELECT id, deployment_id, revision_id {_UNPLACED} AND deployment_id = ANY(%s) ORDER BY id LIMIT %s
"""

_PLACED = columns("id uuid, host text, devices jsonb")

_PLACE = f"UPDATE routes r SET host = u.host, devices = u.devices FROM {_PLACED} WHERE r.id = u.id AND r.host IS NULL"

_IS_THERE = "r.stopped_at IS NULL"
_EVERY_HOST = "SELECT name FROM hosts WHERE down_since IS NULL"
_UP = f"SELECT up.name FROM ({_EVERY_HOST} UNION ALL SELECT '{EXTERNAL}') up"

# all that runs is probed, so one of each host is enough to know; EXISTS would be made a join that reads every route
_WITH_REPLICAS = f"""
    {_UP} WHERE (SELECT true FROM routes r
                  WHERE r.host = up.name AND r.{ACTIVE} AND r.started_at IS NOT NULL AND {_IS_THERE} LIMIT 1)
"""

_WITH_WORK: dict[RouteLifecycleType, str] = {
    RouteLifecycleType.START: f"""
        {_UP} WHERE name IN (SELECT r.host FROM routes r WHERE {IS_TO_START} AND {_IS_THERE}
                             UNION ALL SELECT p.host FROM preparations p WHERE p.state IN ('waiting', 'running'))
    """,
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
    grounds = Placing().grounds(connection, [Wanted(owner, revision) for _, owner, revision in routes])
    placed_routes = zip(routes, placements(grounds), strict=True)
    rows = [
        (route_id, host, devices and as_json(devices)) for (route_id, *_), (host, devices, _) in placed_routes if host
    ]
    if rows:
        connection.execute(_PLACE, _PLACED.arrays(rows))
        count_change(connection, owners)
    return len(rows)


def hosts_with_work(
    connection: Connection, kinds: Iterable[RouteLifecycleType]
) -> list[tuple[RouteLifecycleType, str]]:
    """Each look with the hosts that are up and have something for it; EXTERNAL among them when it has.

    All is asked before the first answer is read.
    """
    cursors = {kind: connection.execute(_WITH_WORK.get(kind, _EVERY_HOST)) for kind in kinds}
    return [(kind, host) for kind, cursor in cursors.items() for (host,) in cursor]


def values(connection: Connection, query: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
    """The one column of the rows."""
    return connection.cursor(row_factory=scalar_row).execute(query, parameters).fetchall()
