"""Events on their way: claimed by a lease, so that no transaction is open while they are sent, in order by deployment.

line = the events of one deployment for one subscription: only its first one may be sent

due ──claim: tries + 1, due again when the lease ends──▶ being sent ──delivered──▶ gone
▲                                                          │ ├──failed──▶ due after a pause
└──────────── its worker died: the lease ends ◀────────────┘ └──given up──▶ kept a while; the next one is first
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import uuid4

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from db.connection.arrays import columns
from domain.outbox.cloud_events import CloudEvent
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

_END = "UPDATE subscriptions SET ended_at = clock_timestamp(), ended_why = %s WHERE name = %s"
_GIVE_UP_ALL = """
    UPDATE outbox SET given_up_at = clock_timestamp(), why = %s WHERE subscription = %s AND given_up_at IS NULL
"""

_FORGET = """
    DELETE FROM outbox
     WHERE position IN (SELECT position FROM outbox WHERE given_up_at < clock_timestamp() - %s LIMIT %s)
"""


def claim_events(
    connection: Connection, lease: timedelta, each: int, under_way: Mapping[str, int] | None = None
) -> list[Pending]:
    """The first event of each line that is due: for each subscription up to `each`, less what is `under_way` to it.

    They are the caller's to send until the lease ends.
    """
    parameters = {"lease": lease, "each": each, "under_way": Jsonb(under_way or {})}
    return connection.cursor(row_factory=class_row(Pending)).execute(_CLAIM, parameters).fetchall()


def record_delivered(connection: Connection, pending: Pending) -> None:
    """The event has arrived, and the next event of its line is first."""
    connection.execute(_DELIVERED, {"position": pending.position, "tries": pending.tries})


def record_failed(connection: Connection, pending: Pending, failure: Failure) -> None:
    """The event is tried again after a pause, or given up; with the subscription all that it has not been told."""
    parameters = {"position": pending.position, "tries": pending.tries, "why": failure.why, "pause": failure.pause}
    connection.execute(_FAILED, parameters)
    if failure.ends:
        connection.execute(_END, (failure.why, pending.subscription))
        connection.execute(_GIVE_UP_ALL, (failure.why, pending.subscription))


def forget_given_up(connection: Connection, older_than: timedelta, limit: int) -> int:
    """Delete up to `limit` events that were given up longer ago than that; returns how many."""
    return connection.execute(_FORGET, (older_than, limit)).rowcount


_EVENTS = columns("""
    place int4, id uuid, type text, deployment_id uuid, actor text, sentence text, rollout_id uuid, route_id uuid
""")

_WRITE = f"""
    INSERT INTO outbox (subscription, deployment_id, id, type, deployment, at, data)
    SELECT s.name, d.id, u.id, u.type, d.name, statement_timestamp(),
           jsonb_build_object(
               'deployment', d.name, 'deployment_id', d.id, 'version', d.version,
               'state', concat_ws('/', d.lifecycle, d.sub_step), 'desired_replicas', d.desired_replicas,
               'revision', c.name, 'actor', u.actor, 'sentence', u.sentence, 'route_id', u.route_id,
               'rollout', CASE WHEN o.id IS NOT NULL THEN jsonb_build_object(
                   'id', o.id, 'from_revision', f.name, 'to_revision', t.name, 'strategy', o.strategy,
                   'outcome', o.outcome, 'back_reason', o.back_reason) END)
      FROM subscriptions s
      JOIN {_EVENTS} ON s.types = '{{}}' OR u.type = ANY(s.types)
      JOIN deployments d ON d.id = u.deployment_id AND (s.deployments = '{{}}' OR d.name = ANY(s.deployments))
      LEFT JOIN revisions c ON c.id = d.current_revision_id
      LEFT JOIN rollouts o ON o.id = coalesce(u.rollout_id, d.rollout_id)
      LEFT JOIN revisions f ON f.id = o.from_revision_id
      LEFT JOIN revisions t ON t.id = o.to_revision_id
     WHERE s.ended_at IS NULL
     ORDER BY u.place, s.name
"""


def write_events(connection: Connection, events: Sequence[CloudEvent]) -> None:
    """Keep these events of locked deployments for their subscribers, with the deployments as their rows are now.

    One statement for all; without subscriptions it writes nothing. To plan it takes Postgres half a millisecond, so the
    claim of the deployments reads whether there are any (`Claim.has_subscribers`).
    """
    rows = [
        (place, uuid4(), event.type, event.deployment_id, event.actor, event.sentence, event.rollout_id, event.route_id)
        for place, event in enumerate(events)
    ]
    if rows:
        connection.execute(_WRITE, _EVENTS.arrays(rows))
