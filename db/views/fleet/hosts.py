"""The read for people: worker hosts, whether they are up, and what runs on each."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from psycopg import Connection
from psycopg.rows import class_row

_HOSTS = """
    SELECT h.name, h.address, h.last_seen_at, h.down_since, h.registered_at, h.clock_offset_seconds, h.contract,
           h.replica_user,
           clock_timestamp() AS now,
           coalesce(r.replicas, '{}') AS replicas,
           CASE WHEN h.down_since IS NULL THEN 'up' ELSE 'down' END AS state
      FROM hosts h
      LEFT JOIN (SELECT host, jsonb_object_agg(status, count) AS replicas
                   FROM (SELECT host, status, count(*) FROM routes
                          WHERE stopped_at IS NULL AND host IS NOT NULL GROUP BY host, status) counted
                  GROUP BY host) r ON r.host = h.name
     ORDER BY h.name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostView:
    """A host at the database's time `now`. `replicas`: how many are not stopped, by status.

    `clock_offset_seconds`: by how much its clock is ahead; `contract`: which one its worker knows. `replica_user`: as
    whom its processes run; None: as the worker's own user.
    """

    name: str
    address: str
    last_seen_at: datetime
    down_since: datetime | None
    registered_at: datetime
    clock_offset_seconds: float
    contract: int
    replica_user: str | None
    now: datetime
    replicas: dict[str, int]
    state: Literal["up", "down"]


def all_hosts(connection: Connection[Any]) -> list[HostView]:
    """Every host that has ever shown a sign of life and was not forgotten, by name."""
    return connection.cursor(row_factory=class_row(HostView)).execute(_HOSTS).fetchall()
