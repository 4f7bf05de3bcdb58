"""Proxies: which are live, what each has acknowledged, and which drains, parked replicas and weights all know."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, scalar_row

from db.connection.arrays import columns, named_row
from db.locking.row_locks import count_change, lock
from db.locking.statuses import ACTIVE, IS_LIVE
from domain.model.states import Lifecycle

# no live proxy holds a table that was read before the weight was set
IS_KNOWN = f"""
    o.outcome IS NULL AND o.weight IS NOT NULL AND o.weight_known_at IS NULL
    AND NOT EXISTS (SELECT FROM proxies p
                     WHERE {IS_LIVE}
                       AND (p.acked_snapshot IS NULL OR NOT pg_visible_in_snapshot(o.weight_xid, p.acked_snapshot)))
"""

_OWNERS_OF_WEIGHTS = f"SELECT o.deployment_id FROM rollouts o WHERE {IS_KNOWN}"

_NOTE = f"""
    UPDATE rollouts o SET weight_known_at = clock_timestamp() WHERE o.deployment_id = ANY(%s) AND {IS_KNOWN}
    RETURNING o.deployment_id
"""


def note_known_weights(connection: Connection) -> int:
    """Note which weights every live proxy knows, and mark their deployments; returns how many.

    Without a live proxy that is all of them: there is nothing to wait for.
    """
    owners = connection.cursor(row_factory=scalar_row).execute(_OWNERS_OF_WEIGHTS).fetchall()
    if not owners:
        return 0
    lock(connection, owners)
    deployment_ids = connection.cursor(row_factory=scalar_row).execute(_NOTE, (owners,)).fetchall()
    count_change(connection, deployment_ids, mark={Lifecycle.DEPLOYING})
    return len(deployment_ids)


# conditions on a proxy `p` and a route `r`
_IS_DRAINING = "r.status = 'terminating' AND r.out_of_traffic_at IS NULL"
# only one that may sleep: nothing waits for the others
_IS_PARKED = f"""
    r.{ACTIVE} AND r.parked_until IS NOT NULL AND r.let_go_at IS NULL
    AND EXISTS (SELECT FROM revisions v WHERE v.id = r.revision_id AND v.spec ->> 'park' IS NOT NULL)
"""
# Of a snapshot that is yet to come: it is of a server that had counted further, and this one is a standby that was
# promoted without its last transactions, or a dump's. What comes now gets numbers that the proxy seems to know.
_IS_OF_ELSEWHERE = "pg_snapshot_xmax({}) > pg_snapshot_xmax(pg_current_snapshot())"
_IS_ACKED_ELSEWHERE = _IS_OF_ELSEWHERE.format("p.acked_snapshot")


def _may_send(xid: str) -> str:
    """Whether the table that the proxy acknowledged was read before this transaction took the route out of it."""
    return f"""
        (p.acked_snapshot IS NULL OR {_IS_ACKED_ELSEWHERE} OR NOT pg_visible_in_snapshot({xid}, p.acked_snapshot))
    """


def _nobody_sends_since(xid: str) -> str:
    return f"({xid} IS NULL OR NOT EXISTS (SELECT FROM proxies p WHERE {IS_LIVE} AND {_may_send(xid)}))"


_IS_LET_GO = f"""
    ({_IS_DRAINING} AND {_nobody_sends_since("r.drain_xid")}
     OR {_IS_PARKED} AND {_nobody_sends_since("r.park_xid")})
"""

_OWNERS = f"SELECT DISTINCT r.deployment_id FROM routes r WHERE {_IS_LET_GO}"

_RELEASE = f"""
    UPDATE routes r
       SET out_of_traffic_at = CASE WHEN r.status = 'terminating' THEN clock_timestamp() END,
           let_go_at = CASE WHEN r.status = 'terminating' THEN r.let_go_at ELSE clock_timestamp() END
     WHERE r.deployment_id = ANY(%s) AND {_IS_LET_GO}
    RETURNING r.deployment_id, extract(epoch FROM coalesce(r.out_of_traffic_at - r.drain_started_at,
                                                           r.let_go_at - r.parked_at, interval '0'))::float8
"""

_SEEN = columns("node_id text, kind text, silence_seconds float8, is_doubled bool, stats_address text")

_NOTE_PROXIES = f"""
    INSERT INTO proxies AS p (node_id, kind, silence_seconds, is_doubled, stats_address)
    SELECT * FROM {_SEEN} ORDER BY node_id
    ON CONFLICT (node_id) DO UPDATE
       SET last_seen_at = clock_timestamp(), kind = excluded.kind, silence_seconds = excluded.silence_seconds,
           is_doubled = excluded.is_doubled, stats_address = excluded.stats_address,
           told_at = CASE WHEN p.stats_address = excluded.stats_address THEN p.told_at END
"""

_ACKS = columns("node_id text, version text, seen text")

_NOTE_ACKS = f"""
    UPDATE proxies p SET acked_version = u.version, acked_snapshot = u.seen::pg_snapshot, acked_at = clock_timestamp()
      FROM {_ACKS}
     WHERE p.node_id = u.node_id AND NOT {_IS_OF_ELSEWHERE.format("u.seen::pg_snapshot")}
"""

_FORGET_SILENT = "DELETE FROM proxies WHERE last_seen_at < clock_timestamp() - interval '1 day'"

_FORGET_ACKS_OF_ELSEWHERE = f"""
    UPDATE proxies p SET acked_version = NULL, acked_snapshot = NULL, acked_at = NULL WHERE {_IS_ACKED_ELSEWHERE}
"""

_NOTE_PUBLISHER = """
    INSERT INTO publishers (id) VALUES (%s) ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp()
"""

_PROXIES = f"""
    SELECT node_id, kind, coalesce({IS_LIVE}, false) AS is_live, is_doubled, acked_version,
           extract(epoch FROM clock_timestamp() - acked_at)::float8 AS acked_seconds_ago,
           extract(epoch FROM clock_timestamp() - last_seen_at)::float8 AS seen_seconds_ago,
           (SELECT count(*)::int FROM routes r
             WHERE {_IS_DRAINING} AND r.drain_xid IS NOT NULL AND {_may_send("r.drain_xid")}) AS drains_waiting
      FROM proxies p ORDER BY node_id
"""


@dataclass(frozen=True, slots=True)
class SeenProxy:
    """A sign of life. `kind`: envoy or traefik. `silence_seconds`: without another for this time it no longer counts.

    `is_doubled`: two proxies use this id, so that one of them may acknowledge what the other does not know.
    `stats_address`: host:port where it tells what it has counted.
    """

    node_id: str
    kind: str
    silence_seconds: float
    is_doubled: bool = False
    stats_address: str | None = None


@dataclass(frozen=True, slots=True)
class Ack:
    """A proxy knows the table of this version, which was read in the snapshot `seen` (`pg_snapshot`, as text)."""

    node_id: str
    version: str
    seen: str


@dataclass(frozen=True, slots=True)
class DrainedRoute:
    """A route that gets no request from any live proxy, `seconds` after it was decided to drain or to park it."""

    deployment_id: UUID
    seconds: float


@dataclass(frozen=True, slots=True)
class ProxyView:
    """A proxy as people see it. `drains_waiting`: draining replicas that it has not acknowledged."""

    node_id: str
    kind: str
    is_live: bool
    is_doubled: bool
    acked_version: str | None
    acked_seconds_ago: float | None
    seen_seconds_ago: float
    drains_waiting: int


def begin_publishing(connection: Connection, publisher_id: str) -> None:
    """A server for proxies begins: those that were live when the last one ended get their whole time to be heard again.

    A proxy's silence counts only while there was a server that it could have talked to.
    """
    _bring_back_to_now(connection)
    cursor = connection.cursor()
    cursor.execute(
        f"""
        WITH live AS (SELECT node_id FROM proxies p WHERE {IS_LIVE} ORDER BY node_id FOR UPDATE)
        UPDATE proxies p SET last_seen_at = clock_timestamp() FROM live WHERE p.node_id = live.node_id
        """
    )
    note_publisher(connection, publisher_id)
    cursor.execute("DELETE FROM publishers WHERE seen_at < clock_timestamp() - interval '1 day'")


def note_publisher(connection: Connection, publisher_id: str) -> None:
    """A server for proxies is there. Proxies that were silent for a day while a server was there are forgotten."""
    _bring_back_to_now(connection)
    connection.execute(_FORGET_ACKS_OF_ELSEWHERE)
    connection.execute(_NOTE_PUBLISHER, (publisher_id,))
    connection.execute(_FORGET_SILENT)


def _bring_back_to_now(connection: Connection) -> None:
    """A clock that was set back leaves times of the future behind, which count as fresh until it has caught up."""
    connection.execute("UPDATE proxies SET last_seen_at = clock_timestamp() WHERE last_seen_at > clock_timestamp()")
    connection.execute("UPDATE publishers SET seen_at = clock_timestamp() WHERE seen_at > clock_timestamp()")


def note_proxies(connection: Connection, proxies: Iterable[SeenProxy]) -> None:
    """Note that these proxies are there; one that nobody knew counts from now on."""
    rows = [(each.node_id, each.kind, each.silence_seconds, each.is_doubled, each.stats_address) for each in proxies]
    if rows:
        connection.execute(_NOTE_PROXIES, _SEEN.arrays(rows))


def note_acks(connection: Connection, acks: Sequence[Ack]) -> None:
    """Note what these proxies know from now on. Unknown proxies are left out."""
    if acks:
        connection.execute(_NOTE_ACKS, _ACKS.arrays((ack.node_id, ack.version, ack.seen) for ack in acks))


def release_drained(connection: Connection) -> list[DrainedRoute]:
    """Note which draining routes, and parked ones that may sleep, get no request from any live proxy, and return them.

    Without a live proxy that is all of them: there is nothing to wait for.
    """
    owners = connection.cursor(row_factory=scalar_row).execute(_OWNERS).fetchall()
    if not owners:
        return []
    lock(connection, owners)
    routes = [DrainedRoute(*row) for row in connection.execute(_RELEASE, (owners,))]
    count_change(connection, {route.deployment_id for route in routes})
    return routes


def list_proxies(connection: Connection) -> list[ProxyView]:
    """Every proxy that was heard of, live or silent, by its node id."""
    return connection.cursor(row_factory=class_row(ProxyView)).execute(_PROXIES).fetchall()


_FOLLOWS = f"""
    SELECT EXISTS (SELECT FROM rollouts o WHERE {IS_KNOWN}) AS weights,
           EXISTS (SELECT FROM routes r WHERE {_IS_LET_GO}) AS drains
"""


class Follows(NamedTuple):
    """Whether there are weights that all know, and drained or parked routes that none uses, which are not noted yet."""

    weights: bool
    drains: bool


def what_follows(connection: Connection) -> Follows:
    """Look without a lock; what is found must be read again under the locks of its deployments."""
    (row,) = connection.cursor(row_factory=named_row(Follows)).execute(_FOLLOWS).fetchall()
    return row
