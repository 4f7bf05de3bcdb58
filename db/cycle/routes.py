"""The routes of a chunk: created with their hosts, brought into traffic, parked and drained."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from psycopg import Connection, Cursor

from db.connection.arrays import UUIDS
from db.locking.rows import columns
from db.locking.statuses import ACTIVE
from domain.cycle.writes import NewRoute
from domain.model.decision import RouteChanges

_CREATED = columns("""
    deployment_id uuid, revision_id uuid, rollout_id uuid, traffic_status text, created_at timestamptz,
    status_changed_at timestamptz, host text
""")

_PROMOTE_ROUTES = "UPDATE routes SET traffic_status = 'active', parked_until = NULL WHERE id = ANY(%(ids)b)"

_PARKED = columns("id uuid, until timestamptz")

_PARK_ROUTES = f"""
    UPDATE routes r SET traffic_status = 'inactive', parked_until = u.until FROM {_PARKED} WHERE r.id = u.id
"""

_DRAIN_ROUTES = f"""
    UPDATE routes
       SET status = 'terminating', traffic_status = 'inactive', status_changed_at = %(at)b, drain_started_at = %(at)b,
           drain_xid = pg_current_xact_id(), status_reason = 'drained'
     WHERE id = ANY(%(ids)b) AND {ACTIVE}
    RETURNING host
"""


@dataclass(frozen=True, slots=True)
class StrategyApplyResult:
    """The routes that a chunk created, brought into traffic and drained.

    `starting` and `stopping`: the hosts of those created and drained; `unplaced`: how many new ones have none yet.
    """

    created: int = 0
    promoted: int = 0
    drained: int = 0
    unplaced: int = 0
    starting: frozenset[str] = frozenset()
    stopping: frozenset[str] = frozenset()

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.created + other.created,
            self.promoted + other.promoted,
            self.drained + other.drained,
            self.unplaced + other.unplaced,
            self.starting | other.starting,
            self.stopping | other.stopping,
        )


@dataclass(frozen=True, slots=True)
class RecordedRoutes:
    """The sent routes. `hosts`: of the new routes; `drains`: the statement that answers with those of the drained."""

    hosts: Sequence[str | None]
    promoted: int
    drained: int
    drains: Cursor[tuple[Any, ...]] | None

    def result(self) -> StrategyApplyResult:
        """Return what it came to; waits for Postgres."""
        stopping = self.drains.fetchall() if self.drains else []
        return StrategyApplyResult(
            created=len(self.hosts),
            promoted=self.promoted,
            drained=self.drained,
            unplaced=self.hosts.count(None),
            starting=frozenset(host for host in self.hosts if host),
            stopping=frozenset(host for (host,) in stopping if host),
        )


def record_routes(
    connection: Connection,
    changes: Sequence[RouteChanges],
    placed: Sequence[tuple[NewRoute, str | None]],
    at: datetime,
) -> RecordedRoutes:
    """Write the routes of decisions, whose deployments are locked: new ones first, promotions before drains."""
    promoted = [route_id for change in changes for route_id in change.promote_route_ids]
    drained = [route_id for change in changes for route_id in change.drain_route_ids]
    parked = [(route_id, change.park_until) for change in changes for route_id in change.park_route_ids]
    if placed:
        created = [
            (new.deployment_id, new.revision_id, new.rollout_id, new.traffic, at, at, host) for new, host in placed
        ]
        _CREATED.add(connection, "routes", created)
    if promoted:
        connection.execute(_PROMOTE_ROUTES, {"ids": UUIDS(promoted)})
    if parked:
        connection.execute(_PARK_ROUTES, _PARKED.arrays(parked))
    drains = connection.execute(_DRAIN_ROUTES, {"ids": UUIDS(drained), "at": at}) if drained else None
    return RecordedRoutes([host for _, host in placed], len(promoted), len(drained), drains)
