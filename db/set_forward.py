"""Repairs times when the database's clock was set forward, as by a failover to a machine whose clock is ahead.

The time between was none: what waits has not waited for it, and no limit has passed by it. What was begun before the
clock was set counts as begun so much later, and each deadline comes as much later. A rollout that was turned back, or a
replica that failed, before a worker saw it says that the clock was set.

One worker of many does so: db/set_back.py.
"""

from datetime import datetime
from uuid import UUID

from psycopg import Connection
from psycopg.rows import scalar_row

from db.locking.locked import ALWAYS, changed, lock
from db.locking.statuses import ACTIVE, PRESENT, RUNNING
from db.set_back import OF_DEPLOYMENTS, OF_ROLLOUTS, OF_ROUTES, begin_to_count

_OWNERS = f"""
    SELECT deployment_id FROM rollouts WHERE outcome IS NULL OR ended_at > %(before)s
    UNION
    SELECT deployment_id FROM routes
     WHERE {PRESENT} AND (parked_until IS NOT NULL OR NOT ({ACTIVE} AND {RUNNING}))
        OR (status = 'failed' AND status_changed_at > %(before)s)
    UNION
    SELECT id FROM deployments WHERE lifecycle <> 'destroyed' AND retry_at IS NOT NULL
"""


def _later(times: tuple[str, ...], deadlines: tuple[str, ...]) -> str:
    """As SET has it. What is empty stays so, and what was written since is right."""
    since = [f"{time} = CASE WHEN {time} <= %(before)s THEN {time} + %(by)s ELSE {time} END" for time in times]
    return ", ".join((*since, *(f"{time} = {time} + %(by)s" for time in deadlines)))


_ROLLOUTS = f"""
    UPDATE rollouts SET {_later(OF_ROLLOUTS, ("deadline",))}
     WHERE deployment_id = ANY(%(ids)s) AND outcome IS NULL AND started_at <= %(before)s
"""
_ROUTES = f"""
    UPDATE routes SET {_later(OF_ROUTES, ("parked_until", "kept_until"))}
     WHERE deployment_id = ANY(%(ids)s) AND stopped_at IS NULL AND created_at <= %(before)s
"""
_DEPLOYMENTS = f"UPDATE deployments SET {_later(OF_DEPLOYMENTS, ('retry_at',))} WHERE id = ANY(%(ids)s)"

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
    """Move times by so much; returns the deployments that this changed, which are looked at again."""
    told = {"by": f"{seconds} seconds", "seconds": seconds, "before": before}
    owners = connection.cursor(row_factory=scalar_row).execute(_OWNERS, told).fetchall()
    if not owners:
        return frozenset()
    lock(connection, owners)
    for query in (_TURNED_BACK, _FAILED, _ROLLOUTS, _ROUTES, _DEPLOYMENTS):
        connection.execute(query.replace("%(by)s", "%(by)s::interval"), {**told, "ids": owners})
    changed(connection, owners, mark=ALWAYS)
    return frozenset(owners)
