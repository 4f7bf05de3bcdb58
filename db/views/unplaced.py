"""Reads for people: the labels of hosts, and the replicas that wait for a host with the labels of their revision."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.locking.statuses import ACTIVE, IS_UNPLACED
from db.views.route_views import RouteView
from domain.revisions.host_labels import Labels, why_unplaced

_LABELS = "SELECT name, labels, down_since IS NOT NULL FROM hosts"

_UNPLACED = f"""
    SELECT d.name, r.id, v.spec -> 'hosts'
      FROM routes r JOIN revisions v ON v.id = r.revision_id JOIN deployments d ON d.id = r.deployment_id
     WHERE {IS_UNPLACED} AND r.{ACTIVE} AND v.spec -> 'hosts' <> '{{}}' AND coalesce(d.id = ANY(%s), true)
     ORDER BY d.name, r.id
"""


def labels_by_host(connection: Connection[Any]) -> dict[str, Labels]:
    """The labels of each known host, up or down."""
    return {name: labels for name, labels, _ in connection.execute(_LABELS).fetchall()}


@dataclass(frozen=True, slots=True)
class UnplacedView:
    """Replicas of a deployment that wait for a host. `why`: a clause about the labels that no host has."""

    deployment: str
    replicas: int
    why: str


def unplaced(connection: Connection[Any]) -> list[UnplacedView]:
    """The replicas that wait for a host with the labels of their revision, by deployment."""
    counts = Counter((deployment, why) for deployment, _, why in _rows(connection, None))
    return [UnplacedView(deployment, count, why) for (deployment, why), count in sorted(counts.items())]


def why_without_host(connection: Connection[Any], routes: Iterable[RouteView]) -> Mapping[UUID, str]:
    """By route, why no host that is up takes its replica; only for those of these routes that wait for a host."""
    owners = {route.deployment_id for route in routes if route.host is None and route.is_active}
    return {route_id: why for _, route_id, why in _rows(connection, [*owners])} if owners else {}


def _rows(connection: Connection[Any], deployment_ids: Sequence[UUID] | None) -> list[tuple[str, UUID, str]]:
    rows = connection.execute(_UNPLACED, (deployment_ids,)).fetchall()
    if not rows:
        return []
    hosts = connection.execute(_LABELS).fetchall()
    up = {name: labels for name, labels, is_down in hosts if not is_down}
    down = {name: labels for name, labels, is_down in hosts if is_down}
    whys = ((deployment, route_id, why_unplaced(labels, up, down)) for deployment, route_id, labels in rows)
    return [(deployment, route_id, why) for deployment, route_id, why in whys if why]
