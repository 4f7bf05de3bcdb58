"""Reads which replica holds which devices, and what revisions demand of hosts."""

import json
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.locking.statuses import TO_STOP
from domain.devices.ledger import Demand, HeldDevice, Ledger
from domain.devices.needs import Capacity
from domain.revisions.host_labels import has_labels

_LOCK = "SELECT pg_advisory_xact_lock(7276531)"

_HOSTS = """
    SELECT name, resources, memory_of_others, down_since IS NULL AND deaf_since IS NULL AND drained_at IS NULL
      FROM hosts WHERE resources <> '{}'
"""

_HELD = f"""
    SELECT x.route_id, x.host, x.kind, x.device, x.amount,
           CASE WHEN r.{TO_STOP} THEN r.status_changed_at END, x.free_at
      FROM held_devices x JOIN routes r ON r.id = x.route_id
     WHERE x.free_at IS NULL OR x.free_at > clock_timestamp()
"""

_OWNED = """
    SELECT kind, device FROM held_devices WHERE host = %s AND (free_at IS NULL OR free_at > clock_timestamp())
"""

_DEMANDS = """
    SELECT id, spec -> 'needs', coalesce(spec -> 'hosts', '{}')
      FROM revisions WHERE id = ANY(%s) AND spec -> 'needs' <> '{}'
"""
_LABELS = "SELECT name, labels FROM hosts"


def locked_ledger(connection: Connection[Any]) -> Ledger:
    """The ledger, which nobody else changes until this transaction ends. Comes after the locks of deployments."""
    connection.execute(_LOCK)
    return read_ledger(connection)


def read_ledger(connection: Connection[Any]) -> Ledger:
    """What hosts have, and what replicas hold of it now."""
    hosts = connection.execute(_HOSTS)
    held = connection.execute(_HELD)
    rows = hosts.fetchall()
    return Ledger(
        {name: resources for name, resources, *_ in rows},
        [HeldDevice(*row) for row in held],
        [name for name, *_, is_open in rows if is_open],
        {name: memory for name, _, memory, _ in rows if memory},
    )


def owned_on(connection: Connection[Any], host: str) -> set[tuple[str, str]]:
    """The devices of this host that replicas own, or have just left, each with its kind."""
    return set(connection.execute(_OWNED, (host,)).fetchall())


def as_json(devices: Capacity) -> bytes:
    """The devices of a replica as its route has them."""
    return json.dumps(devices).encode()


def demands_of(connection: Connection[Any], revisions: Iterable[UUID]) -> dict[UUID, Demand]:
    """The demands of those of these revisions that need devices."""
    rows = connection.execute(_DEMANDS, ([*revisions],)).fetchall()
    hosts = connection.execute(_LABELS).fetchall() if any(required for _, _, required in rows) else []
    return {
        id_: Demand(needs, [name for name, labels in hosts if has_labels(required, name, labels)] if required else None)
        for id_, needs, required in rows
    }
