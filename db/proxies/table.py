"""The read for proxies: every deployment's entrances and published routes, in one snapshot of Postgres.

A row of a newer release may have a kind or a status that this one does not know: it is left out, and named.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeAlias
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
_Canary: TypeAlias = tuple[int | None, UUID | None, int, bool, frozenset[UUID] | None]
_NO_CANARY: _Canary = (None, None, 0, False, None)

_ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

_SEEN = "SELECT pg_current_snapshot()::text"

_DEPLOYMENTS = """
    SELECT id, name, request_timeout_seconds, hedge_after_seconds, preview, idle_timeout_seconds, protocol
      FROM deployments WHERE lifecycle <> 'destroyed' ORDER BY name
"""

_ENTRANCES = "SELECT deployment_id, kind, value, strip_prefix FROM entrances ORDER BY kind, value"

_DRAINING = "status = 'terminating' AND stop_requested_at IS NULL AND stopped_at IS NULL"

_HAS_BASELINE = "coalesce(o.spec #>> '{judge,baseline}' = 'fresh', false)"

# what proxies were told of a canary that has ended they hold until they know the next table, and what its replicas
# still answer they tell of its own cluster; a stage without a weight is that of its mirror
_CANARIES = f"""
    SELECT o.deployment_id, CASE WHEN o.outcome IS NULL THEN o.weight END AS weight,
           CASE WHEN o.spec @> '{{"sticky": true}}' THEN o.id END AS sticky,
           CASE WHEN o.outcome IS NULL AND o.weight = 0 AND o.stage > 0
                THEN (100 * substring(o.spec #>> '{{mirror,share}}' FROM '^[0-9.]+')::float)::int END AS mirrored,
           CASE WHEN {_HAS_BASELINE}
                THEN ARRAY(SELECT r.id FROM routes r JOIN deployments d ON d.id = r.deployment_id
                            WHERE d.rollout_id = o.id AND d.sub_step = 'provisioning'
                              AND r.revision_id = o.from_revision_id AND r.created_at >= o.started_at) END AS baseline
      FROM rollouts o
     WHERE (o.weight IS NOT NULL OR o.stage > 0)
       AND (o.ended_at IS NULL OR o.ended_at > clock_timestamp() - interval '1 minute'
            OR o.to_revision_id IN (SELECT revision_id FROM routes WHERE {_DRAINING})
            OR o.from_revision_id IN (SELECT revision_id FROM routes WHERE {_DRAINING}) AND {_HAS_BASELINE})
     ORDER BY o.deployment_id, o.started_at
"""

_ROUTES = f"""
    SELECT r.deployment_id, r.id, v.name AS revision, r.revision_id, r.address, r.status, r.traffic_status AS traffic,
           r.traffic_ratio AS ratio,
           coalesce(r.revision_id = d.deploying_revision_id, false) AS is_candidate,
           r.parked_until IS NOT NULL AS is_parked,
           coalesce(r.revision_id = d.current_revision_id, false) AS is_current
      FROM routes r JOIN deployments d ON d.id = r.deployment_id JOIN revisions v ON v.id = r.revision_id
     WHERE (r.{RUNNING} OR r.{_DRAINING})
       AND r.address IS NOT NULL
     ORDER BY r.id
"""


def read_traffic(connection: Connection) -> TrafficSnapshot:
    """Everything that proxies may know. The connection must be at the beginning of a transaction."""
    cursor = connection.cursor(binary=True)
    cursor.execute(_ONE_SNAPSHOT)
    ((seen,),) = cursor.execute(_SEEN).fetchall()
    deployments = cursor.execute(_DEPLOYMENTS).fetchall()
    canaries = _canaries(cursor.execute(_CANARIES))
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
                *canaries.get(key, _NO_CANARY),
            )
            for key, name, *rules, protocol in deployments
        ),
        faults=tuple(faults),
    )


def _canaries(
    rows: Iterable[tuple[UUID, int | None, UUID | None, int | None, list[UUID] | None]],
) -> dict[UUID, _Canary]:
    """Of the youngest rollout; a baseline's cluster stays for as long as that of any."""
    found: dict[UUID, _Canary] = {}
    for deployment_id, weight, sticky, mirrored, baseline in rows:
        had_none = found.get(deployment_id, _NO_CANARY)[-1] is None
        beside = None if had_none and baseline is None else frozenset(baseline or ())
        found[deployment_id] = (weight, sticky, mirrored or 0, True, beside)
    return found


def _route_row(deployment_id: UUID, status: str, traffic: str, **fields: Any) -> tuple[UUID, RouteInTraffic | str]:  # noqa: ANN401
    """The route, or why it cannot be read."""
    if traffic not in _TRAFFIC:
        return deployment_id, f"this release knows no traffic {traffic!r}, so replica {fields['id']} is left out"
    return deployment_id, RouteInTraffic(status=RouteStatus(status), traffic=_TRAFFIC[traffic], **fields)
