"""The read for proxies: every deployment's entrances and published routes, in one snapshot of Postgres."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import TupleRow

from db.schema.statuses import RUNNING
from domain.model import RouteStatus, TrafficStatus
from domain.traffic.published import DeploymentInTraffic, Entrance, EntranceKind, RouteInTraffic, TrafficSnapshot

_ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

_SEEN = "SELECT pg_current_snapshot()::text"

_DEPLOYMENTS = "SELECT id, name, request_timeout_seconds FROM deployments WHERE lifecycle <> 'destroyed' ORDER BY name"

_ENTRANCES = "SELECT deployment_id, kind, value, strip_prefix FROM entrances ORDER BY kind, value"

_ROUTES = f"""
    SELECT r.deployment_id, r.id, v.name, r.address, r.status, r.traffic_status, r.traffic_ratio,
           coalesce(r.revision_id = d.deploying_revision_id, false), r.parked_until IS NOT NULL
      FROM routes r JOIN deployments d ON d.id = r.deployment_id JOIN revisions v ON v.id = r.revision_id
     WHERE r.{RUNNING} AND r.address IS NOT NULL
     ORDER BY r.id
"""


def read_traffic(connection: Connection) -> TrafficSnapshot:
    """Everything that proxies may know. The connection must be at the beginning of a transaction."""
    cursor = connection.cursor(binary=True)
    cursor.execute(_ONE_SNAPSHOT)
    seen = cursor.execute(_SEEN).fetchone()
    assert seen is not None  # noqa: S101  (a SELECT without FROM has one row)
    deployments = cursor.execute(_DEPLOYMENTS).fetchall()
    entrances = _grouped((row[0], _entrance(row)) for row in cursor.execute(_ENTRANCES).fetchall())
    routes = _grouped((row[0], _route(row)) for row in cursor.execute(_ROUTES).fetchall())
    return TrafficSnapshot(
        seen=seen[0],
        deployments=tuple(
            DeploymentInTraffic(name, tuple(entrances[key]), timeout, tuple(routes[key]))
            for key, name, timeout in deployments
        ),
    )


def _grouped(pairs: Iterable[tuple[UUID, Any]]) -> defaultdict[UUID, list[Any]]:
    groups: defaultdict[UUID, list[Any]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def _entrance(row: TupleRow) -> Entrance:
    return Entrance(EntranceKind(row[1]), row[2], row[3])


def _route(row: TupleRow) -> RouteInTraffic:
    return RouteInTraffic(
        id=row[1],
        revision=row[2],
        address=row[3],
        status=RouteStatus(row[4]),
        traffic=TrafficStatus(row[5]),
        ratio=row[6],
        is_candidate=row[7],
        is_parked=row[8],
    )
