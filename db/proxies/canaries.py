"""The canaries that proxies are told of: of each deployment that of its youngest rollout."""

from typing import Any
from uuid import UUID

from psycopg import Cursor

from domain.traffic.caller_match import known_chosen
from domain.traffic.snapshot import Canary

DRAINING = "status = 'terminating' AND stop_requested_at IS NULL AND stopped_at IS NULL"

_HAS_BASELINE = "coalesce(o.spec #>> '{judge,baseline}' = 'fresh', false)"

# what proxies were told of a canary that has ended they hold until they know the next table, and what its replicas
# still answer they tell of its own cluster; a stage without a weight is that of its mirror
_CANARIES = f"""
    SELECT o.deployment_id, CASE WHEN o.outcome IS NULL THEN o.weight END AS weight,
           CASE WHEN o.spec @> '{{"sticky": true}}' THEN o.id END AS sticky,
           CASE WHEN o.outcome IS NULL AND o.weight = 0 AND o.stage > 0
                THEN (100 * substring(o.spec #>> '{{mirror,share}}' FROM '^[0-9.]+')::float)::int END AS mirrored,
           CASE WHEN {_HAS_BASELINE}
                THEN ARRAY(SELECT r.id FROM routes r JOIN deployments d ON d.id = r.deployment_id
                            WHERE d.rollout_id = o.id AND d.sub_step = 'provisioning'
                              AND r.revision_id = o.from_revision_id AND r.created_at >= o.started_at) END AS baseline,
           CASE WHEN o.outcome IS NULL THEN o.floor ELSE 0 END AS floor,
           CASE WHEN o.outcome IS NULL THEN o.spec -> 'match' END AS chosen
      FROM rollouts o
     WHERE (o.weight IS NOT NULL OR o.stage > 0)
       AND (o.ended_at IS NULL OR o.ended_at > clock_timestamp() - interval '1 minute'
            OR o.to_revision_id IN (SELECT revision_id FROM routes WHERE {DRAINING})
            OR o.from_revision_id IN (SELECT revision_id FROM routes WHERE {DRAINING}) AND {_HAS_BASELINE})
     ORDER BY o.deployment_id, o.started_at
"""


def canaries_of_all(cursor: Cursor[Any]) -> dict[UUID, Canary]:
    """The canary of the youngest rollout; a baseline's cluster stays for as long as that of any."""
    found: dict[UUID, Canary] = {}
    for deployment_id, weight, sticky, mirrored, baseline, floor, chosen in cursor.execute(_CANARIES):
        had_none = found.get(deployment_id, Canary()).baseline is None
        beside = None if had_none and baseline is None else frozenset(baseline or ())
        found[deployment_id] = Canary(weight, sticky, mirrored or 0, beside, floor, known_chosen(chosen))
    return found
