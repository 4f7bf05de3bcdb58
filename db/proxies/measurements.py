"""Reads what proxies are asked to tell: the rollouts whose next interval is due, and where live proxies are."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.connection.arrays import named_row
from db.connection.transactions import database_now
from db.locking.row_locks import count_change, lock_unheld
from db.locking.statuses import COUNTS_UNANSWERED, IS_COUNTED_ON, IS_LIVE
from db.proxies.recorded_answers import counters_of, intervals_of, record_interval
from domain.commands.rollout_commands import Undo
from domain.model.answer_counts import Answers, Counters, Interval, Look, next_interval, unanswered
from domain.model.states import Lifecycle
from domain.strategies.builtin import stored_policy

_MEASURED = """
    SELECT o.id, d.id AS deployment_id, d.name AS deployment, o.from_revision_id, o.to_revision_id,
           jsonb_build_object('strategy', o.strategy, 'spec', o.spec, 'limits', o.limits) AS policy,
           o.ended_at IS NOT NULL AS has_ended,
           (SELECT name FROM revisions WHERE id = o.from_revision_id) AS from_revision,
           coalesce(i.id, 0) AS last_id, coalesce(i.at, o.started_at) AS last_at,
           CASE WHEN o.back_reason IS NULL AND NOT o.is_undo THEN o.unanswered END AS unanswered,
           o.in_use, o.weight IS NOT NULL AS has_weight
"""
_LAST = "LEFT JOIN LATERAL (SELECT id, at FROM intervals WHERE rollout_id = o.id ORDER BY id DESC LIMIT 1) i ON true"

# Ten minutes after a rollout's last step intervals begin to grow, to a minute at most: one that waits for days must not
# leave a row for each second of them. A time that lies ahead is from before the database's clock was set back.
_DUE = f"""
    {_MEASURED}
      FROM rollouts o JOIN deployments d ON d.id = o.deployment_id AND d.rollout_id = o.id
      {_LAST}
      LEFT JOIN rollout_steps s ON s.rollout_id = o.id AND s.step_no = o.steps
     WHERE o.ended_at IS NULL
       AND (i.at IS NULL OR abs(extract(epoch FROM clock_timestamp() - i.at)) >= greatest(%(every)s,
            least(60, extract(epoch FROM clock_timestamp() - coalesce(s.at, o.started_at)) / 600)))
     ORDER BY o.id
"""

# What has ended and answered nobody yet is looked at on.
_UNPROVEN = f"""
    {_MEASURED}
      FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
      {_LAST}
     WHERE o.unanswered IS NOT NULL AND {COUNTS_UNANSWERED} AND {IS_COUNTED_ON}
       AND (i.at IS NULL OR abs(extract(epoch FROM clock_timestamp() - i.at)) >= %(every)s)
     ORDER BY o.id
"""

_LIVE = f"""
    SELECT node_id, stats_address, told_at IS NOT NULL AS has_told FROM proxies p WHERE {IS_LIVE} ORDER BY node_id
"""

_NOTE_IN_USE = "UPDATE rollouts SET in_use = true WHERE id = %s"
_WAS_SENT = "SELECT FROM answers WHERE rollout_id = %s AND revision_id = %s LIMIT 1"
_NOTE_UNANSWERED = "UPDATE rollouts SET unanswered = %s WHERE id = %s AND (outcome IS NULL) = %s"
# what the rollout's own policy keeps for longer stays
_END_PARKING = """
    UPDATE routes r SET parked_until = u.until
      FROM (SELECT o.deployment_id, o.from_revision_id,
                   greatest(clock_timestamp(), coalesce(o.ended_at, clock_timestamp())
                            + %s * interval '1 s') AS until
              FROM rollouts o WHERE o.id = %s) u
     WHERE r.deployment_id = u.deployment_id AND r.revision_id = u.from_revision_id AND r.parked_until > u.until
"""
_ENQUEUE = """
    INSERT INTO wishes (deployment_id, request_id, task, payload, rollout_id) VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT DO NOTHING
"""

_NOTE_TOLD = "UPDATE proxies SET told_at = clock_timestamp() WHERE node_id = ANY(%s) AND told_at IS NULL"


class DueRollout(NamedTuple):
    """A rollout under way, or one that ended just now and has answered nobody.

    `policy`: as it is stored. `last_id` and `last_at` are of its last interval; 0 and its start before the first.
    `unanswered` and `in_use`: as in `Rollout`; `unanswered` is None where an undo is excluded, as after an undo.
    `has_weight`: it is a canary, whose share may still be none.
    """

    id: UUID
    deployment_id: UUID
    deployment: str
    from_revision_id: UUID
    to_revision_id: UUID
    policy: Mapping[str, Any]
    has_ended: bool
    from_revision: str
    last_id: int
    last_at: datetime
    unanswered: int | None
    in_use: bool
    has_weight: bool


class LiveProxy(NamedTuple):
    """`stats_address`: host:port where it tells what it has counted; None for one that does not.

    `has_told`: it is known to tell there.
    """

    node_id: str
    stats_address: str | None
    has_told: bool


def due_rollouts(connection: Connection[Any], every_seconds: float) -> list[DueRollout]:
    """The rollouts under way, or to be proven, whose last interval ended `every_seconds` ago."""
    cursor, parameters = connection.cursor(row_factory=named_row(DueRollout)), {"every": every_seconds}
    return [*cursor.execute(_DUE, parameters).fetchall(), *cursor.execute(_UNPROVEN, parameters).fetchall()]


def live_proxies(connection: Connection[Any]) -> list[LiveProxy]:
    """The proxies that count, by node id."""
    return connection.cursor(row_factory=named_row(LiveProxy)).execute(_LIVE).fetchall()


def note_told(connection: Connection[Any], node_ids: Collection[str]) -> None:
    """Note which proxies tell what they have counted: from now on they are waited for where they are silent."""
    connection.execute(_NOTE_TOLD, (sorted(node_ids),))


def record_look(connection: Connection[Any], rollout: DueRollout, counters: dict[str, Counters], live: int) -> bool:
    """Write the interval that ends now, from what the proxies told after `rollout` was read, by node id.

    Returns False when another server was faster.
    """
    look = Look(database_now(connection), counters, live)
    interval = next_interval((rollout.last_id, rollout.last_at), counters_of(connection, rollout.id), look)
    is_written = record_interval(connection, rollout.id, interval, counters)
    if is_written and rollout.unanswered is not None:
        _note_in_use(connection, rollout, interval)
        _note_unanswered(connection, rollout)
    return is_written


def _note_in_use(connection: Connection[Any], rollout: DueRollout, interval: Interval) -> None:
    """Note that callers ask and the old revision answers: its last replicas stay until the new one has answered too."""
    old = interval.of.get(rollout.from_revision_id, Answers())
    if rollout.has_ended or rollout.in_use or old.done == old.failed:
        return
    if lock_unheld(connection, rollout.deployment_id):
        connection.execute(_NOTE_IN_USE, (rollout.id,))
        count_change(connection, [rollout.deployment_id])


def _note_unanswered(connection: Connection[Any], rollout: DueRollout) -> None:
    """Count the requests to the new revision until it has answered one, and mark the deployment at each count.

    Where somebody holds the deployment the next look at the proxies counts again. One that has ended goes back by an
    undo, unless it is not the last any more.
    """
    if not connection.execute(_WAS_SENT, (rollout.id, rollout.to_revision_id)).fetchall():
        return
    intervals = intervals_of(connection, rollout.id)
    count = unanswered(intervals, rollout.from_revision_id, rollout.to_revision_id)
    if count != rollout.unanswered and lock_unheld(connection, rollout.deployment_id):
        policy = stored_policy(rollout.policy)
        connection.execute(_NOTE_UNANSWERED, (count, rollout.id, not rollout.has_ended))
        if count is None:
            connection.execute(_END_PARKING, (policy.spec.parked_seconds, rollout.id))
        count_change(connection, [rollout.deployment_id], mark=_lookers(count))
        reason = policy.limits.why_left(count)
        if rollout.has_ended and reason:
            key = f"{rollout.id}:{rollout.last_id}"
            _enqueue(connection, rollout, Undo.of_no_answers(key, rollout.deployment, rollout.from_revision, reason))


def _lookers(count: int | None) -> Collection[Lifecycle]:
    """Statuses to mark: a rollout under way at each count; and ready ones at the first answer, to stop parked ones."""
    return {Lifecycle.DEPLOYING, Lifecycle.READY} if count is None else {Lifecycle.DEPLOYING} if count else ()


def _enqueue(connection: Connection[Any], rollout: DueRollout, undo: Undo) -> None:
    """Keep the command for the deployment's next free moment; it is dropped unless this is the last rollout then."""
    payload = Jsonb(undo.model_dump(mode="json", exclude={"request_id"}))
    connection.execute(_ENQUEUE, (rollout.deployment_id, undo.request_id, undo.task, payload, rollout.id))
