"""What the long tick asks SQL: which deployments are off, so that those that are right need not be loaded."""

from collections.abc import Iterable
from uuid import UUID

from psycopg import Connection

from db.cycle.claim import as_columns
from db.locking.locked import mark_unheld
from db.locking.statuses import ACTIVE, WELL
from domain.model.deployment import DeploymentLifecycleStatus

# Off is what `domain.handlers.check_replica.drift` finds to be so, and sick replicas before their grace has ended.
# The two columns are not compared as pairs: Postgres would count every deployment's routes before it looks at the
# status. Pairs that are mixed here, such as scaling/provisioning, are in no row: a CHECK refuses them.
_IS_OFF = f"""
    d.lifecycle = ANY(%(lifecycles)s) AND coalesce(d.sub_step, '') = ANY(%(sub_steps)s)
    AND (d.lifecycle <> 'ready'
         OR ((d.retry_at IS NULL OR d.retry_at <= clock_timestamp())
             AND (d.degraded_reason IS NOT NULL
                  OR EXISTS (
                      SELECT FROM (
                          SELECT count(*) AS active,
                                 count(*) FILTER (WHERE r.revision_id = d.current_revision_id
                                                    AND r.{WELL}
                                                    AND r.traffic_status = 'active') AS right
                            FROM routes r
                           WHERE r.deployment_id = d.id AND r.{ACTIVE}
                             AND (r.revision_id = d.current_revision_id OR r.parked_until IS NULL
                                  OR r.parked_until <= clock_timestamp())
                      ) counted
                      WHERE counted.active <> d.desired_replicas OR counted.right <> d.desired_replicas))))
"""


def mark_what_is_off(connection: Connection, targets: Iterable[DeploymentLifecycleStatus]) -> frozenset[UUID]:
    """Mark deployments of these statuses; of the ready ones only those whose routes are not what they should be."""
    return mark_unheld(connection, _IS_OFF, as_columns(targets))
