"""A deployment and a rollout as the values of their rows: what the domain foretells is copied, name by name."""

from collections.abc import Callable
from operator import attrgetter

from db.locking.rows import Columns, columns
from domain.model.canary import CanaryState
from domain.model.deployment import Deployment, Rollout

DEPLOYMENT = columns("""
    id uuid, lifecycle text, sub_step text, desired_replicas int4, current_revision_id uuid, deploying_revision_id uuid,
    rollout_id uuid, phase_started_at timestamptz, phase_attempts int4, paused_at timestamptz,
    degraded_reason text, retry_at timestamptz, last_autoscaled_at timestamptz
""")

_CLOCKS = columns("""
    id uuid, last_progress_at timestamptz, deadline timestamptz, clock_stopped_at timestamptz, failed_routes int4,
    steps int4, promote_requested bool
""")
_SIZES = columns("desired_at_start int4, desired_with_revision int4")
_CANARY = columns("stage int4, weight int4, weight_known_at timestamptz")

COUNTED = _CLOCKS + _CANARY
"""What cycles change of a rollout."""

ROLLOUT = _CLOCKS + _SIZES + _CANARY

_clocks: Callable[[Rollout], tuple[object, ...]] = attrgetter(*_CLOCKS.types)
_sizes: Callable[[Rollout], tuple[object, ...]] = attrgetter(*_SIZES.types)
_canary: Callable[[CanaryState], tuple[object, ...]] = attrgetter(*_CANARY.types)
_NO_CANARY = CanaryState(weight=None)


def counted_values(rollout: Rollout) -> tuple[object, ...]:
    """The values of COUNTED, in its order."""
    return _clocks(rollout) + _canary(rollout.canary or _NO_CANARY)


def rollout_values(rollout: Rollout) -> tuple[object, ...]:
    """The values of ROLLOUT, in its order."""
    return _clocks(rollout) + _sizes(rollout) + _canary(rollout.canary or _NO_CANARY)


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
        deployment.autoscaling.last_at,
    )


def assigned(written: Columns) -> str:
    """All of the columns but the id, for a SET: "lifecycle = u.lifecycle, ..."."""
    return ", ".join(f"{name} = {written.alias}.{name}" for name in written.types if name != "id")
