"""Seats: what callers who stay with a replica find it by. A new replica takes the seat of one that has left.

    0 1 2 | 3 waits        three wanted; a new replica has come and has no seat while all are taken
    0   2 | 3              the old one of seat 1 leaves
    0 3 2                  in the same transaction its callers become the new one's, and nobody else moves

The two sides of a canary are told apart by proxies, so each has seats of its own.
"""

from collections.abc import Collection
from uuid import UUID

from psycopg import Connection

# the seat that was left last goes first, one that nobody had last; who left it keeps it until another has taken it
_GIVE = """
    WITH present AS (
        SELECT r.id, r.deployment_id, r.seat, r.traffic_status = 'active' AS serves, r.status = 'healthy' AS is_healthy,
               coalesce(r.revision_id = d.deploying_revision_id AND o.weight IS NOT NULL, false) AS is_canary,
               d.desired_replicas, r.status_changed_at
          FROM deployments d JOIN routes r ON r.deployment_id = d.id LEFT JOIN rollouts o ON o.id = d.rollout_id
         WHERE d.id = ANY(%(ids)b) AND d.has_seats AND (r.traffic_status = 'active' OR r.seat IS NOT NULL)),
    sides AS (
        SELECT deployment_id, is_canary, max(desired_replicas) AS wanted,
               count(seat) FILTER (WHERE serves) AS taken
          FROM present GROUP BY deployment_id, is_canary),
    offered AS (
        SELECT deployment_id, is_canary, seat, status_changed_at AS left_at FROM present WHERE NOT serves
        UNION ALL
        SELECT deployment_id, is_canary, generate_series(0, wanted - 1), '-infinity' FROM sides),
    free AS (
        SELECT deployment_id, is_canary, seat,
               row_number() OVER (PARTITION BY deployment_id, is_canary ORDER BY max(left_at) DESC, seat) AS turn
          FROM offered LEFT JOIN (SELECT deployment_id, is_canary, seat, true AS is_taken FROM present WHERE serves) p
                              USING (deployment_id, is_canary, seat)
         WHERE is_taken IS NULL GROUP BY deployment_id, is_canary, seat),
    waiting AS (
        SELECT deployment_id, is_canary, id,
               row_number() OVER (PARTITION BY deployment_id, is_canary ORDER BY is_healthy DESC, id) AS turn
          FROM present WHERE serves AND seat IS NULL),
    given AS (
        SELECT id, seat, deployment_id, is_canary
          FROM waiting JOIN sides USING (deployment_id, is_canary) JOIN free USING (deployment_id, is_canary, turn)
         WHERE turn <= wanted - taken)
    UPDATE routes r SET seat = becomes.seat
      FROM (SELECT id, seat FROM given
            UNION ALL
            SELECT gone.id, NULL
              FROM present gone JOIN (SELECT deployment_id, is_canary, seat FROM given
                                      UNION ALL
                                      SELECT deployment_id, is_canary, seat FROM present WHERE serves) taken
                             USING (deployment_id, is_canary, seat)
             WHERE NOT gone.serves) becomes
     WHERE r.id = becomes.id
"""


def give_seats(connection: Connection, ids: Collection[UUID]) -> None:
    """Give the free seats of these deployments, which are locked, to replicas in traffic that have none.

    Of those that wait the healthy ones come first, then the older ones. Where callers do not stay there are no seats.
    """
    if ids:
        connection.execute(_GIVE, {"ids": list(ids)})
