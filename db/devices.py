"""The devices that replicas hold or have lent, the demands of revisions, and the waking of sleepers."""

import json
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.connection.arrays import columns
from db.locking.statuses import ACTIVE, HAS_LENT, TO_STOP
from domain.devices.ledger import Demand, HeldDevice, Ledger, Sleeper
from domain.devices.needs import Capacity
from domain.model.states import TrafficStatus
from domain.replicas.host_choice import PlacingGrounds, in_turn_for_devices
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
_BY_ROOM = """
    SELECT h.name
      FROM hosts h LEFT JOIN (SELECT host, count(*) AS count FROM held_devices GROUP BY host) x ON x.host = h.name
     WHERE h.resources <> '{}' AND h.down_since IS NULL AND h.deaf_since IS NULL AND h.drained_at IS NULL
     ORDER BY coalesce(x.count, 0), h.name LIMIT %s
"""
_OF_HOSTS = """
    SELECT h.name, h.resources, h.memory_of_others,
           (SELECT json_agg(json_build_array(NULL, x.host, x.kind, x.device, x.amount)) FROM held_devices x
             WHERE x.host = h.name AND (x.free_at IS NULL OR x.free_at > clock_timestamp()))
      FROM hosts h
     WHERE h.name = ANY(%s) AND h.down_since IS NULL AND h.deaf_since IS NULL AND h.drained_at IS NULL
"""

# memory that a sleeper keeps on a device that it has lent counts as its own
_OWNED = f"""
    SELECT kind, device FROM held_devices WHERE host = %(host)s AND (free_at IS NULL OR free_at > clock_timestamp())
     UNION SELECT k.key, d.key FROM routes r, jsonb_each(r.devices) k, jsonb_each(k.value) d
            WHERE r.host = %(host)s AND {HAS_LENT} AND r.stopped_at IS NULL
"""

_ALL_SLEEPERS = f"SELECT r.id, r.host, r.devices FROM routes r WHERE {HAS_LENT} AND r.stopped_at IS NULL"
_SLEEPERS = f"{_ALL_SLEEPERS} ORDER BY r.id"
_SLEEPERS_OF_HOSTS = f"{_ALL_SLEEPERS} AND r.host = ANY(%s) ORDER BY r.id"

_WOKEN = columns("id uuid, traffic text")

_WAKE = f"""
    UPDATE routes r SET slept_at = NULL, wake_started_at = NULL, parked_until = NULL, traffic_status = u.traffic
      FROM {_WOKEN} WHERE r.id = u.id AND r.slept_at IS NOT NULL AND r.{ACTIVE}
"""

_DEMANDS = """
    SELECT id, spec -> 'needs', coalesce(spec -> 'hosts', '{}'), spec ->> 'park' IS NOT NULL
      FROM revisions WHERE id = ANY(%s) AND spec -> 'needs' <> '{}'
"""
_LABELS = "SELECT name, labels FROM hosts"


_FIRST = (2, 16)
"""The numbers of hosts to read first, before all hosts: the first ones usually have enough devices."""


def locked_ledger(connection: Connection[Any]) -> Ledger:
    """The ledger, locked until this transaction ends. Lock deployments before it."""
    connection.execute(_LOCK)
    return read_ledger(connection)


def locked_ledger_for(connection: Connection[Any], grounds: PlacingGrounds) -> Ledger:
    """The ledger, locked too; only of the first hosts, if they are enough for these replicas."""
    connection.execute(_LOCK)
    needy = [replica for replica in grounds.unplaced if replica.needs]
    turns = in_turn_for_devices(grounds, _FIRST[-1]) if len(needy) <= _FIRST[-1] else []
    demands = {frozenset(replica.needs.items()) for replica in needy if replica.needs}
    for count in _FIRST:
        if len(needy) <= count <= len(turns):
            ledger = _of_hosts(connection, turns[:count])
            if all(ledger.has_choice(Demand(dict(needs)), len(needy)) for needs in demands):
                return ledger
    return read_ledger(connection)


def ledger_with_room(connection: Connection[Any], demands: Iterable[tuple[Demand, int]]) -> Ledger:
    """The ledger of the hosts with the fewest devices in use, if all demands find room there; else of all hosts."""
    names = [name for (name,) in connection.execute(_BY_ROOM, (_FIRST[-1],))]
    ledger = _of_hosts(connection, names)
    if all(ledger.room(demand) >= count for demand, count in demands):
        return ledger
    return read_ledger(connection)


def _of_hosts(connection: Connection[Any], hosts: Sequence[str]) -> Ledger:
    """The ledger of those of these hosts that get new replicas."""
    open_hosts = connection.execute(_OF_HOSTS, ([*hosts],))
    sleepers = connection.execute(_SLEEPERS_OF_HOSTS, ([*hosts],))
    rows = open_hosts.fetchall()
    return Ledger(
        {name: resources for name, resources, *_ in rows},
        [HeldDevice(*device) for *_, holdings in rows for device in holdings or ()],
        [name for name, *_ in rows],
        {name: memory for name, _, memory, _ in rows if memory},
        [Sleeper(*row) for row in sleepers.fetchall()],
    )


def read_ledger(connection: Connection[Any]) -> Ledger:
    """The ledger of all hosts."""
    hosts = connection.cursor(binary=True).execute(_HOSTS)
    holdings = connection.cursor(binary=True).execute(_HELD)
    sleepers = connection.execute(_SLEEPERS)
    rows = hosts.fetchall()
    return Ledger(
        {name: resources for name, resources, *_ in rows},
        [HeldDevice(*row) for row in holdings.fetchall()],
        [name for name, *_, is_open in rows if is_open],
        {name: memory for name, _, memory, _ in rows if memory},
        [Sleeper(*row) for row in sleepers],
    )


def owned_on(connection: Connection[Any], host: str) -> set[tuple[str, str]]:
    """The devices of this host that replicas own, have lent, or have just left, each with its kind."""
    return set(connection.execute(_OWNED, {"host": host}).fetchall())


def wake(connection: Connection[Any], woken: Sequence[tuple[UUID, TrafficStatus]]) -> None:
    """Wake these sleepers, except those whose devices are taken. Their deployments must be locked."""
    can_wake = locked_ledger(connection).lent_by([route_id for route_id, _ in woken])
    able = [(route_id, traffic) for route_id, traffic in woken if can_wake.get(route_id)]
    if able:
        connection.execute(_WAKE, _WOKEN.arrays(able))


def as_json(devices: Capacity) -> bytes:
    """The devices in the form of the column of routes."""
    return json.dumps(devices).encode()


def demands_of(connection: Connection[Any], revisions: Iterable[UUID]) -> dict[UUID, Demand]:
    """The demands of those of these revisions that need devices."""
    rows = connection.execute(_DEMANDS, ([*revisions],)).fetchall()
    hosts = connection.execute(_LABELS).fetchall() if any(required for _, _, required, _ in rows) else []
    return {
        id_: Demand(
            needs,
            [name for name, labels in hosts if has_labels(required, name, labels)] if required else None,
            sleeps,
        )
        for id_, needs, required, sleeps in rows
    }
