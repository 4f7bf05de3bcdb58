"""A deployment and a rollout as the values of their rows: what the domain foretells is copied, name by name."""

from collections.abc import Callable
from operator import attrgetter

from db.locking.rows import Columns, columns
from domain.model.deployment import Deployment, Rollout

DEPLOYMENT = columns("""
    id uuid, lifecycle text, sub_step text, desired_replicas int4, current_revision_id uuid, deploying_revision_id uuid,
    rollout_id uuid, phase_started_at timestamptz, phase_attempts int4, paused_at timestamptz,
    degraded_reason text, retry_at timestamptz, last_autoscaled_at timestamptz
""")

COUNTED = columns("""
    id uuid, last_progress_at timestamptz, deadline timestamptz, clock_stopped_at timestamptz, failed_routes int4,
    steps int4, promote_requested bool, stage int4, weight int4, weight_known_at timestamptz
""")
"""What cycles change of a rollout."""

ROLLOUT = COUNTED + columns("desired_at_start int4, desired_with_revision int4")

counted_values: Callable[[Rollout], tuple[object, ...]] = attrgetter(*COUNTED.types)
"""In the order of COUNTED, whose columns are called as the fields are."""

rollout_values: Callable[[Rollout], tuple[object, ...]] = attrgetter(*ROLLOUT.types)
"""In the order of ROLLOUT, likewise."""


def deployment_values(deployment: Deployment) -> tuple[object, ...]:
    """In the order of DEPLOYMENT."""
    return (
        deployment.id,
        deployment.status.lifecycle,
        deployment.status.sub_step,
        deployment.desired_replicas,
        deployment.current_revision_id,
        deployment.deploying_revision_id,
        deployment.rollout.id if deployment.rollout else None,
        deployment.phase_started_at,
        deployment.phase_attempts,
        deployment.paused_at,
        deployment.degraded_reason,
        deployment.retry_at,
        deployment.last_autoscaled_at,
    )


def assigned(written: Columns) -> str:
    """All of the columns but the id, for a SET: "lifecycle = u.lifecycle, ..."."""
    return ", ".join(f"{name} = {written.alias}.{name}" for name in written.types if name != "id")
