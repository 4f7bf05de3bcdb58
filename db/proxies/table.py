"""The read for proxies: every deployment's entrances and published routes, in one snapshot of Postgres.

A row of a newer release may have a kind or a status that this one does not know: it is left out, and named.
"""

from collections import defaultdict
from dataclasses import replace
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import kwargs_row

from db.statuses import RUNNING
from domain.model import RouteStatus, TrafficStatus
from domain.traffic.published import (
    DeploymentInTraffic,
    Entrance,
    EntranceKind,
    RequestRules,
    RouteInTraffic,
    TrafficSnapshot,
    known_protocol,
)

_KINDS = {kind.value: kind for kind in EntranceKind}
_TRAFFIC = {traffic.value: traffic for traffic in TrafficStatus}

_ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

_SEEN = "SELECT pg_current_snapshot()::text"

_DEPLOYMENTS = """
    SELECT id, name, request_timeout_seconds, hedge_after_seconds, preview, idle_timeout_seconds, protocol
      FROM deployments WHERE lifecycle <> 'destroyed' ORDER BY name
"""

_ENTRANCES = "SELECT deployment_id, kind, value, strip_prefix FROM entrances ORDER BY kind, value"

_DRAINING = "status = 'terminating' AND stop_requested_at IS NULL AND stopped_at IS NULL"

# what proxies were told of a canary that has ended they hold until they know the next table, and what its replicas
# still answer they tell of its own cluster; a stage without a weight is that of its mirror
_CANARIES = f"""
    SELECT deployment_id, CASE WHEN outcome IS NULL THEN weight END, CASE WHEN spec @> '{{"sticky": true}}' THEN id END,
           CASE WHEN outcome IS NULL AND weight = 0 AND stage > 0
                THEN (100 * substring(spec #>> '{{mirror,share}}' FROM '^[0-9.]+')::float)::int END
      FROM rollouts
     WHERE (weight IS NOT NULL OR stage > 0)
       AND (ended_at IS NULL OR ended_at > clock_timestamp() - interval '1 minute'
            OR to_revision_id IN (SELECT revision_id FROM routes WHERE {_DRAINING}))
     ORDER BY started_at
"""

_ROUTES = f"""
    SELECT r.deployment_id, r.id, v.name AS revision, r.revision_id, r.address, r.status, r.traffic_status AS traffic,
           r.traffic_ratio AS ratio,
           coalesce(r.revision_id = d.deploying_revision_id, false) AS is_candidate,
           r.parked_until IS NOT NULL AS is_parked,
           coalesce(r.revision_id = d.current_revision_id, false) AS is_current
      FROM routes r JOIN deployments d ON d.id = r.deployment_id JOIN revisions v ON v.id = r.revision_id
     WHERE (r.{RUNNING} OR r.status = 'terminating' AND r.stop_requested_at IS NULL AND r.stopped_at IS NULL)
       AND r.address IS NOT NULL
     ORDER BY r.id
"""


def read_traffic(connection: Connection) -> TrafficSnapshot:
    """Everything that proxies may know. The connection must be at the beginning of a transaction."""
    cursor = connection.cursor(binary=True)
    cursor.execute(_ONE_SNAPSHOT)
    ((seen,),) = cursor.execute(_SEEN).fetchall()
    deployments = cursor.execute(_DEPLOYMENTS).fetchall()
    canaries = {
        key: (weight, sticky, mirrored or 0, True) for key, weight, sticky, mirrored in cursor.execute(_CANARIES)
    }
    faults: list[str] = []
    entrances: defaultdict[UUID, list[Entrance]] = defaultdict(list)
    for deployment_id, kind, value, strip_prefix in cursor.execute(_ENTRANCES).fetchall():
        if kind in _KINDS:
            entrances[deployment_id].append(Entrance(_KINDS[kind], value, strip_prefix))
        else:
            faults.append(f"this release knows no {kind} entrances, so {value!r} is left out")
    routes: defaultdict[UUID, list[RouteInTraffic]] = defaultdict(list)
    for deployment_id, route in connection.cursor(binary=True, row_factory=kwargs_row(_route_row)).execute(_ROUTES):
        if isinstance(route, RouteInTraffic):
            routes[deployment_id].append(route)
        else:
            faults.append(route)
    return TrafficSnapshot(
        seen=seen,
        deployments=tuple(
            DeploymentInTraffic(
                name,
                tuple(entrances[key]),
                replace(RequestRules(*rules), protocol=known_protocol(protocol)),
                tuple(routes[key]),
                *canaries.get(key, (None, None, 0, False)),
            )
            for key, name, *rules, protocol in deployments
        ),
        faults=tuple(faults),
    )


def _route_row(deployment_id: UUID, status: str, traffic: str, **fields: Any) -> tuple[UUID, RouteInTraffic | str]:  # noqa: ANN401
    """The route, or why it cannot be read."""
    if traffic not in _TRAFFIC:
        return deployment_id, f"this release knows no traffic {traffic!r}, so replica {fields['id']} is left out"
    return deployment_id, RouteInTraffic(status=RouteStatus(status), traffic=_TRAFFIC[traffic], **fields)
