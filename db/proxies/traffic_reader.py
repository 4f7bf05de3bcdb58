"""The read for proxies: every deployment's entrances and published routes, in one snapshot of Postgres.

A row of a newer release may have a kind or a status that this one does not know: it is left out, and named.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.rows import class_row, kwargs_row

from db.certificates import secured_of
from db.locking.statuses import RUNNING
from domain.model.states import RouteStatus, TrafficStatus
from domain.traffic.canary_shares import CanaryInTraffic
from domain.traffic.maintenance import known_maintenance
from domain.traffic.release import coming_wire, in_force, known_release
from domain.traffic.snapshot import (
    Canary,
    DeploymentInTraffic,
    Entrance,
    EntranceKind,
    RouteInTraffic,
    TrafficSnapshot,
    known_rules,
)
from domain.traffic.wire import Wire, known_wire, replica_wire

DRAINING = "status = 'terminating' AND stop_requested_at IS NULL AND stopped_at IS NULL"

# what proxies were told of a canary that has ended they hold until they know the next table, and what its replicas
# still answer they tell of its own cluster, or of its baseline's
_CANARIES = f"""
    SELECT o.deployment_id, o.id AS rollout_id, o.outcome IS NOT NULL AS has_ended, o.weight, o.stage, o.floor, o.spec,
           (o.ended_at IS NULL OR o.ended_at > clock_timestamp() - interval '1 minute'
            OR o.to_revision_id IN (SELECT revision_id FROM routes WHERE {DRAINING})) AS is_recent,
           ARRAY(SELECT r.id FROM routes r JOIN deployments d ON d.id = r.deployment_id
                  WHERE d.rollout_id = o.id AND d.sub_step = 'provisioning'
                    AND r.revision_id = o.from_revision_id AND r.created_at >= o.started_at) AS baseline
      FROM rollouts o
     WHERE (o.weight IS NOT NULL OR o.stage > 0)
       AND (o.ended_at IS NULL OR o.ended_at > clock_timestamp() - interval '1 minute'
            OR o.to_revision_id IN (SELECT revision_id FROM routes WHERE {DRAINING})
            OR o.from_revision_id IN (SELECT revision_id FROM routes WHERE {DRAINING}))
     ORDER BY o.deployment_id, o.started_at
"""


def _canaries(connection: Connection) -> dict[UUID, Canary]:
    """The canary of the youngest rollout; a baseline's cluster stays for as long as that of any."""
    canaries: dict[UUID, Canary] = {}
    for rollout in connection.cursor(binary=True, row_factory=class_row(CanaryInTraffic)).execute(_CANARIES):
        if not rollout.is_known_to_proxies:
            continue
        sharing, before = rollout.sharing, canaries.get(rollout.deployment_id, Canary())
        keeps_baseline = sharing.baseline is None and before.baseline is not None
        canaries[rollout.deployment_id] = replace(sharing, baseline=frozenset()) if keeps_baseline else sharing
    return canaries


_KINDS = {kind.value: kind for kind in EntranceKind}
_TRAFFIC = {traffic.value: traffic for traffic in TrafficStatus}

_ONE_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

_SEEN = "SELECT pg_current_snapshot()::text"

_PUBLISHED = f"({RUNNING} OR {DRAINING}) AND address IS NOT NULL"

# of each deployment a hash of its rows and of the transactions that wrote them: the same while nobody has written one
_MARKS = f"""
    SELECT d.id, uuid_hash_extended(d.id, d.xmin::text::bigint) # coalesce(r.mark, 0) # coalesce(e.mark, 0)
                 # coalesce(c.mark, 0)
      FROM deployments d
      LEFT JOIN (SELECT deployment_id, bit_xor(uuid_hash_extended(id, xmin::text::bigint)) AS mark
                   FROM routes WHERE {_PUBLISHED} GROUP BY deployment_id) r ON r.deployment_id = d.id
      LEFT JOIN (SELECT deployment_id, bit_xor(hashtextextended(kind || value, xmin::text::bigint)) AS mark
                   FROM entrances GROUP BY deployment_id) e ON e.deployment_id = d.id
      LEFT JOIN (SELECT deployment_id, bit_xor(hashtextextended(kind || name, xmin::text::bigint)) AS mark
                   FROM certificates GROUP BY deployment_id) c ON c.deployment_id = d.id
     WHERE d.lifecycle <> 'destroyed' ORDER BY d.name
"""

_DEPLOYMENTS = """
    SELECT d.id, d.name, d.request_timeout_seconds, d.hedge_after_seconds, d.preview, d.idle_timeout_seconds,
           d.protocol, d.maintenance, d.rules, o.traffic, o.back_reason IS NOT NULL AS goes_back
      FROM deployments d LEFT JOIN rollouts o ON o.id = d.rollout_id WHERE d.id = ANY(%s)
"""

_ENTRANCES = """
    SELECT deployment_id, kind, value, strip_prefix FROM entrances WHERE deployment_id = ANY(%s) AND NOT reserved
     ORDER BY kind, value
"""

_ROUTES = f"""
    SELECT r.deployment_id, r.id, v.name AS revision, r.revision_id, r.address, r.status, r.traffic_status AS traffic,
           r.traffic_ratio AS ratio,
           coalesce(r.revision_id = d.deploying_revision_id, false) AS is_candidate,
           r.parked_until IS NOT NULL AS is_parked,
           coalesce(r.revision_id = d.current_revision_id, false) AS is_current, r.seat, v.wire
      FROM (SELECT * FROM routes WHERE deployment_id = ANY(%s) AND {_PUBLISHED}) r
      JOIN deployments d ON d.id = r.deployment_id JOIN revisions v ON v.id = r.revision_id
     ORDER BY r.id
"""


_AUTHORITIES = "SELECT deployment_id, name, chain FROM certificates WHERE kind = 'replicas' AND deployment_id = ANY(%s)"


@dataclass(frozen=True, slots=True)
class _KnownDeployment:
    """A deployment as it was read last, and what of it could not be. `mark`: of the rows that said so."""

    mark: int
    deployment: DeploymentInTraffic
    faults: tuple[str, ...]


class TrafficReader:
    """Reads all that proxies may know; of deployments that are as they were at its last read, only that they are."""

    def __init__(self) -> None:
        self._found: Mapping[UUID, _KnownDeployment] = {}
        self._deployments: tuple[DeploymentInTraffic, ...] = ()

    def read(self, connection: Connection) -> TrafficSnapshot:
        """The connection must be at the beginning of a transaction. What has not changed is the same object again."""
        cursor = connection.cursor(binary=True)
        cursor.execute(_ONE_SNAPSHOT)
        ((snapshot_id,),) = cursor.execute(_SEEN).fetchall()
        canaries = _canaries(connection)
        marks = dict[UUID, int](cursor.execute(_MARKS).fetchall())
        marks |= {key: hash((marks[key], canary)) for key, canary in canaries.items() if key in marks}
        before = self._found
        changed_ids = [key for key, mark in marks.items() if key not in before or before[key].mark != mark]
        anew: dict[UUID, _KnownDeployment] = {}
        for key, deployment, faults in _read_deployments(connection, changed_ids, canaries) if changed_ids else ():
            same = key in before and before[key].deployment == deployment
            anew[key] = _KnownDeployment(marks[key], before[key].deployment if same else deployment, faults)
        self._found = {key: anew.get(key) or before[key] for key in marks}
        if anew or len(marks) != len(before):
            self._deployments = tuple(entry.deployment for entry in self._found.values())
        left_out = tuple(fault for entry in self._found.values() if entry.faults for fault in entry.faults)
        return TrafficSnapshot(snapshot_id, self._deployments, left_out)


def read_traffic(connection: Connection) -> TrafficSnapshot:
    """Everything that proxies may know. The connection must be at the beginning of a transaction."""
    return TrafficReader().read(connection)


def _read_deployments(
    connection: Connection, ids: Collection[UUID], canaries: Mapping[UUID, Canary]
) -> Iterator[tuple[UUID, DeploymentInTraffic, tuple[str, ...]]]:
    """Read these deployments, each with what of it cannot be read."""
    cursor, parameters = connection.cursor(binary=True), (list(ids),)
    deployments = cursor.execute(_DEPLOYMENTS, parameters).fetchall()
    faults: defaultdict[UUID, list[str]] = defaultdict(list)
    entrances, routes = _entrances(cursor, parameters, faults), _routes(connection, parameters, faults)
    tls_of = secured_of(cursor, [key for key, *_, together, release, _ in deployments if _says_tls(together, release)])
    authorities = {(key, name): chain for key, name, chain in cursor.execute(_AUTHORITIES, parameters)}
    for (
        key,
        name,
        timeout,
        hedge,
        preview,
        idle,
        protocol,
        maintenance,
        together,
        pending,
        goes_back,
    ) in deployments:
        before = tuple(entrances[key]), known_rules(timeout, hedge, idle, protocol, together, preview=preview)
        release, canary, usual = known_release(pending), canaries.get(key), before[1].wire
        its_routes = tuple(_on_wire(route, wire or usual) for wire, route in routes[key])
        reach, rules = in_force(before, release, its_routes, canary)
        coming = coming_wire(rules, None if goes_back else release, its_routes)
        wires = {wire.name: wire for wire in (coming, *(wire or usual for wire, _ in routes[key]))}
        deployment = DeploymentInTraffic(
            name,
            reach,
            rules,
            its_routes,
            canary,
            tls_of.get(key) if rules.tls else None,
            known_maintenance(maintenance),
            coming.name,
            {each: replica_wire(name, wire, authorities.get((key, wire.ca))) for each, wire in wires.items()},
        )
        yield key, deployment, tuple(faults[key])


_Faults = defaultdict[UUID, list[str]]


def _entrances(cursor: Cursor[Any], parameters: tuple[list[UUID]], faults: _Faults) -> Mapping[UUID, list[Entrance]]:
    entrances: defaultdict[UUID, list[Entrance]] = defaultdict(list)
    for key, kind, value, strip_prefix in cursor.execute(_ENTRANCES, parameters).fetchall():
        if kind in _KINDS:
            entrances[key].append(Entrance(_KINDS[kind], value, strip_prefix))
        else:
            faults[key].append(f"this release knows no {kind} entrances, so {value!r} is left out")
    return entrances


def _routes(
    connection: Connection, parameters: tuple[list[UUID]], faults: _Faults
) -> Mapping[UUID, list[tuple[Wire | None, RouteInTraffic]]]:
    """The routes, each with how it is spoken to; None: as its deployment's are."""
    routes: defaultdict[UUID, list[tuple[Wire | None, RouteInTraffic]]] = defaultdict(list)
    rows = connection.cursor(binary=True, row_factory=kwargs_row(_route_row)).execute(_ROUTES, parameters)
    for key, wire, route in rows:
        if isinstance(route, RouteInTraffic):
            routes[key].append((wire, route))
        else:
            faults[key].append(route)
    return routes


def _on_wire(route: RouteInTraffic, wire: Wire) -> RouteInTraffic:
    return replace(route, wire=wire.name) if wire.name else route


def _says_tls(together: Mapping[str, Any], release: Mapping[str, Any] | None) -> bool:
    return "tls" in together or (release is not None and "tls" in release["rules"])


def _route_row(
    deployment_id: UUID,
    status: str,
    traffic: str,
    wire: Mapping[str, Any] | None,
    **fields: Any,  # noqa: ANN401
) -> tuple[UUID, Wire | None, RouteInTraffic | str]:
    """The route, or why it cannot be read."""
    replica_protocol = None if wire is None else known_wire(wire)
    if traffic not in _TRAFFIC:
        why = f"this release knows no traffic {traffic!r}, so replica {fields['id']} is left out"
        return deployment_id, replica_protocol, why
    return (
        deployment_id,
        replica_protocol,
        RouteInTraffic(status=RouteStatus(status), traffic=_TRAFFIC[traffic], **fields),
    )
