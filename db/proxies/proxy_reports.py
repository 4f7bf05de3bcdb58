"""What proxies report besides judged answers: callers, demand, drains, and sick replicas that still answer."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import kwargs_row, scalar_row

from db.connection.arrays import columns
from db.connection.transactions import database_now
from db.locking.row_locks import count_change, lock_unheld
from db.locking.statuses import IS_LIVE
from db.proxies.measurements import LiveProxy
from domain.autoscaling.rule import ProxyMetric
from domain.autoscaling.scaling_decision import DemandSeries
from domain.replicas.drain import IDLE_LOOKS, DrainLook
from domain.replicas.health import MOST_KEPT, RENEWED_BELOW, kept_until
from domain.traffic.request_counts import NO_REQUESTS, NOBODY, OTHERS, Answering, Came, Requests

_CAME = columns("deployment text, revision_id uuid, fine int8, redirected int8, refused int8, failed int8, waited text")

_WAITED = """
    ARRAY(SELECT known + more FROM unnest(r.waited, excluded.waited) WITH ORDINALITY AS w (known, more, place)
           ORDER BY place)
"""
_ADD = f"""
       SET fine = r.fine + excluded.fine, redirected = r.redirected + excluded.redirected,
           refused = r.refused + excluded.refused, failed = r.failed + excluded.failed, waited = {_WAITED}
"""

# one order for all, so that two servers never wait for each other in a circle
_MINUTES = f"""
    INSERT INTO requests AS r (deployment_id, minute, revision_id, fine, redirected, refused, failed, waited)
    SELECT d.id, date_trunc('minute', clock_timestamp()), u.revision_id,
           u.fine, u.redirected, u.refused, u.failed, u.waited::int8[]
      FROM {_CAME} JOIN deployments d ON d.name = u.deployment AND d.lifecycle <> 'destroyed'
     ORDER BY d.id, u.revision_id
        ON CONFLICT (deployment_id, minute, revision_id) DO UPDATE {_ADD}
"""
_SUMS = f"""
    INSERT INTO request_sums AS r (deployment, revision_id, fine, redirected, refused, failed, waited)
    SELECT u.deployment, u.revision_id, u.fine, u.redirected, u.refused, u.failed, u.waited::int8[]
      FROM {_CAME} ORDER BY u.deployment, u.revision_id
        ON CONFLICT (deployment, revision_id) DO UPDATE {_ADD}, at = clock_timestamp()
"""

_PAST = (
    "DELETE FROM requests WHERE minute < clock_timestamp() - interval '62 minutes'",
    "DELETE FROM request_sums WHERE at < clock_timestamp() - interval '1 hour'",
)
_KNOWN = "SELECT name FROM deployments WHERE name = ANY(%s) AND lifecycle <> 'destroyed'"


def add_requests(connection: Connection[Any], came: Came, names: Collection[str]) -> None:
    """Add what came since the last look. `names`: the deployments that sums know by name."""
    known_names = {name for (name,) in connection.execute(_KNOWN, (sorted({deployment for deployment, _ in came}),))}
    its = {of: requests for of, requests in came.items() if of[0] in known_names}
    sums: defaultdict[Answering, Requests] = defaultdict(lambda: NO_REQUESTS)
    for (deployment, revision), requests in its.items():
        of = (deployment, revision) if deployment in names else (OTHERS, NOBODY)
        sums[of] += requests
    for statement, rows in ((_MINUTES, its), (_SUMS, sums)):
        if rows:
            connection.execute(statement, _CAME.arrays([(*of, *_values(requests)) for of, requests in rows.items()]))
    for past in _PAST:
        connection.execute(past)


def _values(requests: Requests) -> tuple[Any, ...]:
    return (*requests.classes, f"{{{','.join(map(str, requests.waited))}}}")


# what a newer release may read of proxies is left to that one
_SERIES = """
    SELECT DISTINCT d.id AS deployment_id, d.name AS deployment,
           (SELECT count(*)::int FROM routes r
             WHERE r.deployment_id = d.id AND r.status = 'healthy' AND r.traffic_status = 'active') AS serving,
           a.series, a.metric, a.aggregate = 'avg' AS is_per_replica
      FROM autoscaling_rules a JOIN deployments d ON d.id = a.deployment_id
     WHERE a.source = 'proxy' AND a.metric = ANY(%s) AND a.aggregate IN ('avg', 'sum') AND d.lifecycle <> 'destroyed'
     ORDER BY deployment_id, a.series
"""

# One that was heard of lately may still send requests, though it counts as gone. Of two with one id one would be asked.
_PROXIES = f"""
    SELECT node_id, stats_address, told_at IS NOT NULL, coalesce({IS_LIVE}, false) AND NOT is_doubled AS is_asked
      FROM proxies p
     WHERE {IS_LIVE} OR p.last_seen_at > clock_timestamp() - interval '10 minutes'
     ORDER BY node_id
"""


class Demanded(NamedTuple):
    """The demand to read at the database's time `now`, who is asked, and the node ids of all that should tell."""

    series: Sequence[DemandSeries]
    proxies: Sequence[LiveProxy]
    expected: frozenset[str]
    now: datetime


def demanded(connection: Connection[Any]) -> Demanded | None:
    """None where no rule reads what proxies tell."""
    series = connection.cursor(row_factory=kwargs_row(_series)).execute(_SERIES, (list(ProxyMetric),)).fetchall()
    if not series:
        return None
    now = database_now(connection)
    proxies = connection.execute(_PROXIES).fetchall()
    live = [LiveProxy(*proxy) for *proxy, is_asked in proxies if is_asked]
    return Demanded(series, live, frozenset(node for node, *_ in proxies), now)


def _series(metric: str, **fields: Any) -> DemandSeries:  # noqa: ANN401  (columns of every kind)
    return DemandSeries(metric=ProxyMetric(metric), **fields)


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
class DrainReport:
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
    owners = connection.cursor(row_factory=scalar_row).execute(_NOTE, _LOOKS.arrays(under_way.items())).fetchall()
    return IDLE_LOOKS in owners


def told_of_drains(connection: Connection[Any], route_ids: Iterable[UUID]) -> DrainReport:
    """Read what proxies told of these routes: one statement."""
    rows = connection.execute(_TOLD, (list(route_ids),)).fetchall()
    looks = {route_id: DrainLook(under_way, idle_looks) for *_, route_id, under_way, idle_looks in rows if route_id}
    now, do_tell, have_told, *_ = rows[0]
    return DrainReport(now, do_tell, have_told, looks)


_IS_LATE = "status = 'unhealthy' AND kept_until IS NOT NULL AND stopped_at IS NULL"
_LATE = f"SELECT id FROM routes WHERE {_IS_LATE}"

_DUE = f"""
    SELECT deployment_id, id, status_changed_at FROM routes
     WHERE id = ANY(%s) AND {_IS_LATE}
       AND kept_until < least(clock_timestamp() + %s, status_changed_at + %s)
     ORDER BY deployment_id, id
"""

_KEPT = columns("id uuid, until timestamptz")
_KEEP = f"UPDATE routes r SET kept_until = u.until FROM {_KEPT} WHERE r.id = u.id AND {_IS_LATE}"


def late_routes(connection: Connection[Any]) -> list[UUID]:
    """The sick routes whose replicas answered no probe in time."""
    return connection.cursor(row_factory=scalar_row).execute(_LATE).fetchall()


def keep_answering(connection: Connection[Any], route_ids: Collection[UUID]) -> bool:
    """Keep these, which answer callers now. False where somebody held a deployment: then the next look keeps them."""
    now, are_kept = database_now(connection), True
    due: dict[UUID, list[tuple[UUID, Any]]] = {}
    for owner, route_id, found_sick_at in connection.execute(
        _DUE, (list(route_ids), RENEWED_BELOW, MOST_KEPT)
    ).fetchall():
        due.setdefault(owner, []).append((route_id, kept_until(found_sick_at, now)))
    for owner, owned_ids in due.items():
        if lock_unheld(connection, owner):
            connection.execute(_KEEP, _KEPT.arrays(owned_ids))
            count_change(connection, [owner])
        else:
            are_kept = False
    return are_kept
