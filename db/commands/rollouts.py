"""The record of a rollout: opened with its clocks, turned back, closed. The deployment's row changes with it."""

from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from domain.activation import ActivationRequest
from domain.commands import ActivateRevision
from domain.evaluator import EVALUATOR
from domain.model import Deployment, RolloutOutcome
from domain.policy import DeploymentPolicy
from domain.strategies.budget import resting_budget

_BEGIN = """
    WITH begun AS (
        INSERT INTO rollouts (deployment_id, from_revision_id, to_revision_id, strategy, spec, limits,
                              desired_at_start, ceiling, floor, actor, reason, started_at, last_progress_at, deadline)
        SELECT d.id, d.current_revision_id, %(to)s, %(strategy)s, %(spec)s, %(limits)s,
               %(desired_at_start)s, %(ceiling)s, %(floor)s, %(actor)s, %(reason)s,
               t.now, t.now, t.now + %(timeout)s * interval '1 second'
          FROM deployments d, (SELECT clock_timestamp() AS now) t
         WHERE d.id = %(id)s
        RETURNING id, deployment_id, started_at)
    UPDATE deployments d
       SET lifecycle = 'deploying', sub_step = 'provisioning', deploying_revision_id = %(to)s, rollout_id = begun.id,
           desired_replicas = %(desired)s, phase_started_at = begun.started_at, phase_attempts = 0, paused_at = NULL,
           degraded_reason = NULL, retry_at = NULL
      FROM begun
     WHERE d.id = begun.deployment_id
    RETURNING begun.id
"""

_TURN_BACK = """
    WITH turned AS (
        UPDATE rollouts SET back_reason = coalesce(back_reason, %(why)s), clock_stopped_at = NULL
         WHERE deployment_id = %(id)s AND ended_at IS NULL)
    UPDATE deployments
       SET sub_step = 'rolling_back', paused_at = NULL, phase_attempts = 0,
           phase_started_at = CASE sub_step WHEN 'rolling_back' THEN phase_started_at ELSE clock_timestamp() END
     WHERE id = %(id)s
"""

_RESIZE = """
    UPDATE rollouts SET desired_at_start = %s, ceiling = %s, floor = %s WHERE deployment_id = %s AND ended_at IS NULL
"""

_END = """
    UPDATE rollouts SET outcome = %s, ended_at = clock_timestamp(), clock_stopped_at = NULL
     WHERE deployment_id = %s AND ended_at IS NULL
"""


def begin_deployment(
    connection: Connection, deployment: Deployment, request: ActivationRequest, command: ActivateRevision
) -> UUID:
    """Open a rollout with its clocks and its own copy of the policy. Returns its id.

    A rollout that supersedes another goes back to the size that was wanted before the first of them.
    """
    policy = request.policy
    if policy is None:
        raise ValueError("a rollout needs a policy")
    stored = policy.as_json()
    before = deployment.rollout.desired_at_start if deployment.rollout else deployment.desired_replicas
    desired = deployment.desired_replicas if command.desired_replicas is None else command.desired_replicas
    ceiling, floor = guarded(policy, desired, before)
    cursor = connection.execute(
        _BEGIN,
        {
            "id": deployment.id,
            "to": request.revision_id,
            "strategy": policy.strategy,
            "spec": Jsonb(stored["spec"]),
            "limits": Jsonb(stored["limits"]),
            "desired_at_start": before,
            "desired": desired,
            "ceiling": ceiling,
            "floor": floor,
            "actor": command.actor,
            "reason": command.reason,
            "timeout": policy.limits.timeout_seconds,
        },
    )
    (rollout_id,) = cursor.fetchall()[0]
    return UUID(str(rollout_id))


def guarded(policy: DeploymentPolicy, desired: int, before: int) -> tuple[int, int]:
    """The ceiling and floor that Postgres holds a rollout to: the widest of its budgets on the way there and back."""
    strategy = EVALUATOR.strategy_of(policy)
    budgets = [strategy.budget(policy.spec, n, before) if strategy else resting_budget(n) for n in (desired, before)]
    return max(budget.ceiling for budget in budgets), min(budget.keep for budget in budgets)


def resize(connection: Connection, deployment: Deployment, desired: int) -> None:
    """A size asked for in the middle of a rollout holds on the way back too."""
    if deployment.rollout is None:
        return
    ceiling, floor = guarded(deployment.rollout.policy, desired, before=desired)
    connection.execute(_RESIZE, (desired, ceiling, floor, deployment.id))


def turn_back(connection: Connection, deployment: Deployment, why: str) -> UUID | None:
    """Leave a rollout for the revision it came from: no rollout of its own, but the way back. Returns its id."""
    connection.execute(_TURN_BACK, {"id": deployment.id, "why": why})
    return deployment.rollout.id if deployment.rollout else None


def end_rollout(connection: Connection, deployment: Deployment, outcome: RolloutOutcome) -> None:
    """Close the deployment's open rollout; its pointers are the caller's to move, in the same transaction."""
    connection.execute(_END, (outcome.value, deployment.id))
