"""Records what a chunk did: the rollouts' clocks and counters, the timeline for people."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from uuid import UUID, uuid4

from psycopg import Connection

from db.cycle.claim import HistoryHead
from db.locking.rows import Columns, columns
from domain.cycle.writes import Foretold
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


_DECIDED = COUNTED + columns("back_reason text, outcome text")

_UPDATE_ROLLOUTS = f"""
    UPDATE rollouts r
       SET {assigned(COUNTED)},
           back_reason = coalesce(r.back_reason, u.back_reason), outcome = u.outcome,
           ended_at = CASE WHEN u.outcome IS NOT NULL THEN %(at)b END
      FROM {_DECIDED} WHERE r.id = u.id
"""

_HISTORY = columns("""
    id uuid, deployment_id uuid, rollout_id uuid, phase text, result text, error_code text, target text, actor text,
    message text, created_at timestamptz, updated_at timestamptz
""")

_REPEATED = columns("id uuid, message text")

_MERGE_HISTORY = f"""
    UPDATE deployment_history h SET attempts = h.attempts + 1, message = u.message, updated_at = %(at)b
      FROM {_REPEATED} WHERE h.id = u.id
"""


def record_rollouts(connection: Connection, left: Iterable[Foretold], at: datetime) -> None:
    """Clocks, counters, direction and outcome of the rollouts that decisions change."""
    rows = [(*counted_values(each.rollout), each.back_reason, each.outcome) for each in left if each.rollout]
    if rows:
        connection.execute(_UPDATE_ROLLOUTS, _DECIDED.arrays(rows, at=at))


def record_history(
    connection: Connection,
    phase: str,
    changing: Sequence[Foretold],
    heads: Mapping[UUID, HistoryHead],
    at: datetime,
) -> list[HistoryHead]:
    """A record for people, or one more attempt on the last one; returns the last record of each, in their order."""
    repeated, new, last = [], [], []
    for each in changing:
        key, decision, head = each.key, each.decision, heads[each.decision.deployment.id]
        if each.remembered_as == head.key:
            repeated.append((head.id, decision.reason))
        elif key:
            head = HistoryHead(uuid4(), each.remembered_as)
            what = (key.rollout_id, phase, key.result.value, key.error_code, key.target)
            new.append((head.id, decision.deployment.id, *what, phase, decision.reason, at, at))
        last.append(head)
    if repeated:
        connection.execute(_MERGE_HISTORY, _REPEATED.arrays(repeated, at=at))
    if new:
        _HISTORY.add(connection, "deployment_history", new)
    return last
