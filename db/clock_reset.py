"""Repairs times when the database's clock was set, as by a failover to a machine whose clock is behind or ahead.

Set back: a time that lies ahead cannot have been and counts as now. So nothing waits for the old time to come again,
and nothing that is waited for ends too early. Deadlines, which may lie ahead, come later by the same time.
A server for proxies does the same for what it notes itself (db/proxies/acks.py).

Set forward: the time between was none. What waits has not waited for it, and no limit has passed by it. What was begun
before the clock was set counts as begun later by the same time, and each deadline moves with it. A rollout that was
turned back, or a replica that failed, before a worker saw it says that the clock was set.

Every worker sees that the clock was set, and one that has just started cannot: of many at once one worker counts.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row

from db.locking.row_locks import ALWAYS, count_change, lock
from db.locking.statuses import ACTIVE, PRESENT, RUNNING

OF_ROUTES = (
    "started_at",
    "status_changed_at",
    "healthy_at",
    "warm_up_started_at",
    "warmed_at",
    "asleep_at",
    "slept_at",
    "wake_started_at",
    "parked_at",
    "let_go_at",
    "drain_started_at",
    "out_of_traffic_at",
    "stop_requested_at",
)
OF_DEPLOYMENTS = ("phase_started_at", "paused_at", "last_autoscaled_at", "last_failed_at", "came_up_at")
OF_ROLLOUTS = ("started_at", "last_progress_at", "clock_stopped_at", "weight_known_at")
"""Columns with times of events of what is under way; NULL for an event that has not happened yet."""


def _is_ahead(times: Sequence[str]) -> str:
    return f"greatest({', '.join(times)}) > clock_timestamp()"


def _to_now(times: Sequence[str]) -> str:
    """The assignments of a SET. NULL stays NULL: least() would replace it, since it ignores NULL."""
    return ", ".join(
        f"{time} = CASE WHEN {time} > clock_timestamp() THEN clock_timestamp() ELSE {time} END" for time in times
    )


_OWNERS = f"""
    SELECT deployment_id FROM routes WHERE stopped_at IS NULL AND {_is_ahead(OF_ROUTES)}
    UNION
    SELECT id FROM deployments WHERE lifecycle <> 'destroyed' AND {_is_ahead(OF_DEPLOYMENTS)}
    UNION
    SELECT deployment_id FROM rollouts WHERE outcome IS NULL AND {_is_ahead(OF_ROLLOUTS)}
"""

_ROUTES = f"""
    UPDATE routes SET {_to_now((*OF_ROUTES, "kept_until"))}
     WHERE deployment_id = ANY(%s) AND stopped_at IS NULL AND {_is_ahead(OF_ROUTES)}
"""

_DEPLOYMENTS = f"UPDATE deployments SET {_to_now(OF_DEPLOYMENTS)} WHERE id = ANY(%s)"

# what is created from now on is no older than the rollout
_ROLLOUTS = f"UPDATE rollouts SET {_to_now(OF_ROLLOUTS)} WHERE deployment_id = ANY(%s) AND outcome IS NULL"


# a worker that finds the row locked does not wait: counting may take seconds, and a heartbeat is due each second
_TURN = """
    SELECT coalesce(counted_at BETWEEN %s AND clock_timestamp(), false) FROM installation FOR UPDATE SKIP LOCKED
"""

# when it begins, since what lies ahead by a clock that is set back meanwhile may be missed
_BEGINS = "UPDATE installation SET counted_at = clock_timestamp()"


def see_it_counted(connection: Connection, seen_at: datetime) -> bool:
    """Count from now unless a worker has begun to since the clock showed `seen_at`.

    False: another worker counts right now. It may have begun before, or may fail, so ask again.
    """
    turn = begin_to_count(connection, seen_at)
    if turn:
        count_from_now(connection)
    return turn is not None


def begin_to_count(connection: Connection, seen_at: datetime) -> bool | None:
    """Whether it is this worker's turn: none has begun since the clock showed `seen_at`. None: another one is at it."""
    turn = connection.cursor(row_factory=scalar_row).execute(_TURN, (seen_at,)).fetchall()
    if turn == [False]:
        connection.execute(_BEGINS)
    return not turn[0] if turn else None


def count_from_now(connection: Connection) -> frozenset[UUID]:
    """Bring times that lie ahead back to now; returns the deployments that this changed, which are looked at again."""
    owners = connection.cursor(row_factory=scalar_row).execute(_OWNERS).fetchall()
    if not owners:
        return frozenset()
    lock(connection, owners)
    connection.execute(_ROUTES, (owners,))
    connection.execute(_DEPLOYMENTS, (owners,))
    connection.execute(_ROLLOUTS, (owners,))
    count_change(connection, owners, mark=ALWAYS)
    return frozenset(owners)


_LATE_OWNERS = f"""
    SELECT deployment_id FROM rollouts WHERE outcome IS NULL OR ended_at > %(before)s
    UNION
    SELECT deployment_id FROM routes
     WHERE {PRESENT} AND (parked_until IS NOT NULL OR NOT ({ACTIVE} AND {RUNNING}))
        OR (status = 'failed' AND status_changed_at > %(before)s)
    UNION
    SELECT id FROM deployments WHERE lifecycle <> 'destroyed' AND retry_at IS NOT NULL
"""


def _later(times: tuple[str, ...], deadlines: tuple[str, ...]) -> str:
    """The assignments of a SET. NULL stays NULL, and times that were written since are right."""
    since = [f"{time} = CASE WHEN {time} <= %(before)s THEN {time} + %(by)s ELSE {time} END" for time in times]
    return ", ".join((*since, *(f"{time} = {time} + %(by)s" for time in deadlines)))


_LATE_ROLLOUTS = f"""
    UPDATE rollouts SET {_later(OF_ROLLOUTS, ("deadline",))}
     WHERE deployment_id = ANY(%(ids)s) AND outcome IS NULL AND started_at <= %(before)s
"""
_LATE_ROUTES = f"""
    UPDATE routes SET {_later(OF_ROUTES, ("parked_until", "kept_until"))}
     WHERE deployment_id = ANY(%(ids)s) AND stopped_at IS NULL AND created_at <= %(before)s
"""
_LATE_DEPLOYMENTS = f"UPDATE deployments SET {_later(OF_DEPLOYMENTS, ('retry_at',))} WHERE id = ANY(%(ids)s)"

_WHY = "concat({}, '; meanwhile the clock of PostgreSQL was set forward by ', %(seconds)s::int, ' s')"
_TURNED_BACK = f"""
    UPDATE rollouts o SET back_reason = {_WHY.format("back_reason")}
      FROM deployments d
     WHERE d.id = o.deployment_id AND d.id = ANY(%(ids)s) AND o.back_reason IS NOT NULL AND o.started_at <= %(before)s
       AND (o.ended_at > %(before)s OR (o.outcome IS NULL AND d.phase_started_at > %(before)s))
"""
_FAILED = f"""
    UPDATE routes SET status_reason = {_WHY.format("status_reason")}
     WHERE deployment_id = ANY(%(ids)s) AND status = 'failed' AND created_at <= %(before)s
       AND status_changed_at > %(before)s
"""


def see_it_counted_on(connection: Connection, seconds: float, before: datetime) -> bool:
    """Count on unless a worker has begun to. `before`: what the clock showed at last before it was set so far.

    False: another worker counts right now. It may fail, so ask again.
    """
    turn = begin_to_count(connection, before)
    if turn:
        count_on(connection, seconds, before)
    return turn is not None


def count_on(connection: Connection, seconds: float, before: datetime) -> frozenset[UUID]:
    """Move times by these seconds; returns the deployments that this changed, which are looked at again."""
    parameters = {"by": f"{seconds} seconds", "seconds": seconds, "before": before}
    owners = connection.cursor(row_factory=scalar_row).execute(_LATE_OWNERS, parameters).fetchall()
    if not owners:
        return frozenset()
    lock(connection, owners)
    for query in (_TURNED_BACK, _FAILED, _LATE_ROLLOUTS, _LATE_ROUTES, _LATE_DEPLOYMENTS):
        connection.execute(query.replace("%(by)s", "%(by)s::interval"), {**parameters, "ids": owners})
    count_change(connection, owners, mark=ALWAYS)
    return frozenset(owners)
