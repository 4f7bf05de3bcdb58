"""A steered deployment becomes rows: its own, its rollout's, and the record in the timeline. Values are copied."""

from datetime import datetime

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.commands.locked import note
from domain.commands import DeploymentCommand
from domain.model import Deployment, Rollout
from domain.rollout import guard_of
from domain.steered import Steered

_CHANGE_ROLLOUT = """
    UPDATE rollouts
       SET deadline = %(deadline)s, last_progress_at = %(last_progress_at)s, clock_stopped_at = %(clock_stopped_at)s,
           promote_requested = %(promote_requested)s, desired_at_start = %(desired_at_start)s,
           desired_with_revision = %(desired_with_revision)s, ceiling = %(ceiling)s, floor = %(floor)s,
           back_reason = coalesce(back_reason, %(back_reason)s)
     WHERE id = %(id)s
"""

_END_ROLLOUT = "UPDATE rollouts SET outcome = %s, ended_at = %s, clock_stopped_at = NULL WHERE id = %s"

_BEGIN_ROLLOUT = """
    INSERT INTO rollouts (id, deployment_id, from_revision_id, to_revision_id, strategy, spec, limits, desired_at_start,
                          desired_with_revision, ceiling, floor, count_stopping, actor, reason,
                          started_at, last_progress_at, deadline)
    VALUES (%(id)s, %(deployment_id)s, %(from)s, %(to)s, %(strategy)s, %(spec)s, %(limits)s, %(desired_at_start)s,
            %(desired_with_revision)s, %(ceiling)s, %(floor)s, %(count_stopping)s, %(actor)s, %(reason)s,
            %(started_at)s, %(last_progress_at)s, %(deadline)s)
"""

_CHANGE_DEPLOYMENT = """
    UPDATE deployments
       SET lifecycle = %(lifecycle)s, sub_step = %(sub_step)s, desired_replicas = %(desired_replicas)s,
           current_revision_id = %(current)s, deploying_revision_id = %(deploying)s, rollout_id = %(rollout_id)s,
           paused_at = %(paused_at)s, phase_started_at = %(phase_started_at)s, phase_attempts = %(phase_attempts)s,
           degraded_reason = %(degraded_reason)s, retry_at = %(retry_at)s, version = %(version)s, due_at = %(now)s
     WHERE id = %(id)s
"""


def write_steered(
    connection: Connection, before: Deployment, steered: Steered, command: DeploymentCommand, now: datetime
) -> None:
    """Write what the command made of the locked deployment `before`, and mark it."""
    after = steered.deployment
    if before.rollout is not None and steered.ended is not None:
        connection.execute(_END_ROLLOUT, (steered.ended.value, now, before.rollout.id))
    if after.rollout is not None:
        _write_rollout(connection, before, after.rollout, steered, command)
    connection.execute(
        _CHANGE_DEPLOYMENT,
        {
            "id": after.id,
            "lifecycle": after.status.lifecycle,
            "sub_step": after.status.sub_step,
            "desired_replicas": after.desired_replicas,
            "current": after.current_revision_id,
            "deploying": after.deploying_revision_id,
            "rollout_id": after.rollout.id if after.rollout else None,
            "paused_at": after.paused_at,
            "phase_started_at": after.phase_started_at,
            "phase_attempts": after.phase_attempts,
            "degraded_reason": after.degraded_reason,
            "retry_at": after.retry_at,
            "version": after.version,
            "now": now,
        },
    )
    if steered.said:
        verb = command.task.rpartition(".")[2].removesuffix("_revision")
        note(connection, after.id, command, verb, steered.said)


def _write_rollout(
    connection: Connection, before: Deployment, rollout: Rollout, steered: Steered, command: DeploymentCommand
) -> None:
    guard = guard_of(steered.deployment)
    columns = {
        "id": rollout.id,
        "deadline": rollout.deadline,
        "last_progress_at": rollout.last_progress_at,
        "clock_stopped_at": rollout.clock_stopped_at,
        "promote_requested": rollout.promote_requested,
        "desired_at_start": rollout.desired_at_start,
        "desired_with_revision": rollout.desired_with_revision,
        "ceiling": guard.ceiling,
        "floor": guard.keep,
        "back_reason": steered.back_reason,
    }
    if before.rollout is not None and before.rollout.id == rollout.id:
        connection.execute(_CHANGE_ROLLOUT, columns)
        return
    policy = rollout.policy.as_json()
    begun = {
        "deployment_id": before.id,
        "from": rollout.from_revision_id,
        "to": rollout.to_revision_id,
        "strategy": policy["strategy"],
        "spec": Jsonb(policy["spec"]),
        "limits": Jsonb(policy["limits"]),
        "count_stopping": guard.count_stopping,
        "actor": command.actor,
        "reason": command.reason,
        "started_at": rollout.started_at,
    }
    connection.execute(_BEGIN_ROLLOUT, {**columns, **begun})
