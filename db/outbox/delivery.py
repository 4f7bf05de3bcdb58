"""Events on their way: claimed by a lease, so that no transaction is open while they are sent, in order by deployment.

line = the events of one deployment for one subscription: only its first one may be sent

due ──claim: tries + 1, due again when the lease ends──▶ being sent ──delivered──▶ gone
▲                                                          │ ├──failed──▶ due after a pause
└──────────── its worker died: the lease ends ◀────────────┘ └──given up──▶ kept a while; the next one is first
"""

from collections.abc import Mapping
from datetime import timedelta

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from domain.outbox.delivery import Failure, Pending

_CLAIM = """
    WITH RECURSIVE lines AS (
        (SELECT subscription, deployment_id, position FROM outbox WHERE given_up_at IS NULL
          ORDER BY subscription, deployment_id, position LIMIT 1)
        UNION ALL
        SELECT following.* FROM lines l CROSS JOIN LATERAL (
            SELECT o.subscription, o.deployment_id, o.position FROM outbox o
             WHERE o.given_up_at IS NULL AND (o.subscription, o.deployment_id) > (l.subscription, l.deployment_id)
             ORDER BY o.subscription, o.deployment_id, o.position LIMIT 1) following
    ), due AS (
        SELECT o.position, row_number() OVER (PARTITION BY o.subscription ORDER BY o.due_at, o.position) AS turn
          FROM lines l JOIN outbox o ON o.position = l.position
         WHERE o.due_at <= statement_timestamp()
    ), taken AS (
        SELECT o.position FROM outbox o JOIN due ON due.position = o.position
         WHERE due.turn <= %(each)s - coalesce((%(under_way)s::jsonb ->> o.subscription)::int, 0)
           AND o.due_at <= statement_timestamp() AND o.given_up_at IS NULL
           FOR UPDATE OF o SKIP LOCKED
    )
    UPDATE outbox o SET tries = o.tries + 1, due_at = clock_timestamp() + %(lease)s
      FROM taken, subscriptions s, installation i
     WHERE o.position = taken.position AND s.name = o.subscription
    RETURNING o.position, o.id, o.type, o.deployment, o.at, o.data, i.id AS installation, o.subscription, s.webhook,
              s.task, s.queue, make_interval(secs => s.give_up_after_seconds) AS give_up_after, o.tries,
              clock_timestamp() AS tried_at
"""

_OURS = "position = %(position)s AND tries = %(tries)s"
"""Still this try: once its lease has ended another worker may be at it, and what became of this one counts no more."""

_DELIVERED = f"DELETE FROM outbox WHERE {_OURS}"

_FAILED = f"""
    UPDATE outbox
       SET why = %(why)s, due_at = clock_timestamp() + coalesce(%(pause)s, interval '0'),
           given_up_at = CASE WHEN %(pause)s::interval IS NULL THEN clock_timestamp() END
     WHERE {_OURS}
"""

_FORGET = """
    DELETE FROM outbox
     WHERE position IN (SELECT position FROM outbox WHERE given_up_at < clock_timestamp() - %s LIMIT %s)
"""


def has_due(connection: Connection) -> bool:
    """Whether an event may have to be sent; one that stands behind another may be among them."""
    query = "SELECT FROM outbox WHERE given_up_at IS NULL AND due_at <= statement_timestamp() LIMIT 1"
    return connection.execute(query).fetchone() is not None


def claim_events(
    connection: Connection, lease: timedelta, each: int, under_way: Mapping[str, int] | None = None
) -> list[Pending]:
    """The first event of each line that is due: for each subscription up to `each`, less what is `under_way` to it.

    They are the caller's to send until the lease ends.
    """
    given = {"lease": lease, "each": each, "under_way": Jsonb(under_way or {})}
    return connection.cursor(row_factory=class_row(Pending)).execute(_CLAIM, given).fetchall()


def record_delivered(connection: Connection, pending: Pending) -> None:
    """The event has arrived, and the next event of its line is first."""
    connection.execute(_DELIVERED, {"position": pending.position, "tries": pending.tries})


def record_failed(connection: Connection, pending: Pending, failure: Failure) -> None:
    """The event is tried again after a pause, or given up."""
    given = {"position": pending.position, "tries": pending.tries, "why": failure.why, "pause": failure.pause}
    connection.execute(_FAILED, given)


def forget_given_up(connection: Connection, older_than: timedelta, limit: int) -> int:
    """Delete up to `limit` events that were given up longer ago than that; returns how many."""
    return connection.execute(_FORGET, (older_than, limit)).rowcount
