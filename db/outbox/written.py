"""Events become rows, one for each subscription that wants them, in the transaction of what they tell."""

from collections.abc import Sequence
from uuid import uuid4

from psycopg import Connection

from db.locking.rows import columns
from domain.outbox.cloud_events import CloudEvent

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
     ORDER BY u.place, s.name
"""


def write_events(connection: Connection, events: Sequence[CloudEvent]) -> None:
    """Keep these events of locked deployments for who wants them, with the deployments as their rows are now.

    One statement, however many there are; where nobody subscribes it writes nothing. To plan it takes Postgres half a
    millisecond, so who claimed the deployments asks by the way whether anybody does (`Claim.is_heard`).
    """
    rows = [
        (place, uuid4(), event.type, event.deployment_id, event.actor, event.sentence, event.rollout_id, event.route_id)
        for place, event in enumerate(events)
    ]
    if rows:
        connection.execute(_WRITE, _EVENTS.arrays(rows))
