"""Draining replicas: how many of their answers are under way, as all live proxies told."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row

from db.locking.rows import columns
from db.locking.statuses import IS_LIVE
from domain.replicas.drain import IDLE_LOOKS, DrainLook

_BETWEEN_LOOKS = "interval '0.4 seconds'"

_TO_LOOK_AT = """
    SELECT id FROM routes
     WHERE status = 'terminating' AND out_of_traffic_at IS NOT NULL AND stop_requested_at IS NULL AND stopped_at IS NULL
"""

_LOOKS = columns("route_id uuid, under_way int4")

# of two servers that look at once one counts
_NOTE = f"""
    INSERT INTO drain_looks AS l (route_id, under_way, idle_looks)
    SELECT u.route_id, u.under_way, CASE WHEN u.under_way = 0 THEN 1 ELSE 0 END
      FROM {_LOOKS} JOIN routes r ON r.id = u.route_id
     ORDER BY u.route_id
    ON CONFLICT (route_id) DO UPDATE
       SET under_way = excluded.under_way, looked_at = clock_timestamp(),
           idle_looks = CASE WHEN excluded.under_way = 0 THEN l.idle_looks + 1 ELSE 0 END
     WHERE abs(extract(epoch FROM clock_timestamp() - l.looked_at)) >= extract(epoch FROM {_BETWEEN_LOOKS})
    RETURNING idle_looks
"""

_TOLD = f"""
    SELECT clock_timestamp(),
           coalesce(live.tell, false), coalesce(live.have_told, false), l.route_id, l.under_way, l.idle_looks
      FROM (SELECT bool_and(stats_address IS NOT NULL) AS tell, bool_and(told_at IS NOT NULL) AS have_told
              FROM proxies p WHERE {IS_LIVE}) live
      LEFT JOIN drain_looks l ON l.route_id = ANY(%s)
"""


@dataclass(frozen=True, slots=True)
class Told:
    """The looks of proxies at draining routes, as of the database's time `now`: the last at each that there was.

    `do_proxies_tell`: there are live proxies, and each has a port where it tells what is under way.
    `have_proxies_told`: each is known to tell there.
    """

    now: datetime
    do_proxies_tell: bool
    have_proxies_told: bool
    looks: Mapping[UUID, DrainLook]


def routes_to_look_at(connection: Connection[Any]) -> list[UUID]:
    """The draining routes that every live proxy has let go of, and whose replicas were not asked to end yet."""
    return connection.cursor(row_factory=scalar_row).execute(_TO_LOOK_AT).fetchall()


def note_drain_looks(connection: Connection[Any], under_way: Mapping[UUID, int]) -> bool:
    """Note what all live proxies told of these routes. Returns whether one may be stopped now that it is idle."""
    found = connection.cursor(row_factory=scalar_row).execute(_NOTE, _LOOKS.arrays(under_way.items())).fetchall()
    return IDLE_LOOKS in found


def told_of_drains(connection: Connection[Any], route_ids: Iterable[UUID]) -> Told:
    """Read what proxies told of these routes: one statement."""
    rows = connection.execute(_TOLD, (list(route_ids),)).fetchall()
    looks = {route_id: DrainLook(under_way, idle_looks) for *_, route_id, under_way, idle_looks in rows if route_id}
    now, do_tell, have_told, *_ = rows[0]
    return Told(now, do_tell, have_told, looks)
