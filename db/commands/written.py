"""A steered deployment becomes rows: its own, its rollout's, and the record in the timeline. Values are copied."""

from uuid import uuid4

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.commands.locked import write_note
from db.cycle.values import DEPLOYMENT, ROLLOUT, assigned, deployment_values, rollout_values
from domain.commands.base import DeploymentCommand, StartingCommand
from domain.model import Deployment, Rollout
from domain.rollout import guard_of
from domain.steered import Asking, Steered

_CHANGE_ROLLOUT = f"""
    UPDATE rollouts r
       SET {assigned(ROLLOUT)},
           ceiling = %(ceiling)s, floor = %(floor)s, back_reason = coalesce(r.back_reason, %(back_reason)s)
      FROM {ROLLOUT} WHERE r.id = u.id
"""

_END_ROLLOUT = "UPDATE rollouts SET outcome = %s, ended_at = %s, clock_stopped_at = NULL WHERE id = %s"

_BEGIN_ROLLOUT = f"""
    INSERT INTO rollouts ({", ".join(ROLLOUT.types)}, deployment_id, from_revision_id, to_revision_id, strategy, spec,
                          limits, ceiling, floor, count_stopping, is_undo, through_freeze, actor, reason,
                          started_at)
    SELECT u.*, %(deployment_id)s, %(from)s, %(to)s, %(strategy)s, %(spec)s, %(limits)s, %(ceiling)s, %(floor)s,
           %(count_stopping)s, %(is_undo)s, %(through_freeze)s, %(actor)s, %(reason)s, %(started_at)s
      FROM {ROLLOUT}
"""

_CHANGE_DEPLOYMENT = f"""
    UPDATE deployments d
       SET {assigned(DEPLOYMENT)}, version = %(version)s, due_at = %(now)s,
           history_id = coalesce(%(record_id)s, d.history_id),
           history_key = CASE WHEN %(record_id)s::uuid IS NULL THEN d.history_key END
      FROM {DEPLOYMENT} WHERE d.id = u.id
"""

_GIVE_UP_REPLICAS = """
    UPDATE routes
       SET status = CASE status WHEN 'failed' THEN status ELSE 'terminated' END, traffic_status = 'inactive',
           status_changed_at = %(now)s,
           status_reason = CASE status WHEN 'failed' THEN status_reason ELSE 'taken as stopped, by force' END,
           drain_started_at = coalesce(drain_started_at, %(now)s),
           drain_xid = coalesce(drain_xid, pg_current_xact_id()), stopped_at = %(now)s
     WHERE deployment_id = %(id)s AND stopped_at IS NULL
"""


def write_steered(
    connection: Connection, before: Deployment, steered: Steered, command: DeploymentCommand, asking: Asking
) -> None:
    """Write what the command made of the locked deployment `before`, and mark it."""
    after, now = steered.deployment, asking.at
    if before.rollout is not None and steered.ended is not None:
        connection.execute(_END_ROLLOUT, (steered.ended.value, now, before.rollout.id))
    if after.rollout is not None:
        _write_rollout(connection, before, after.rollout, steered, command)
    record_id = uuid4() if steered.said else None
    values = DEPLOYMENT.arrays([deployment_values(after)], version=after.version, now=now, record_id=record_id)
    connection.execute(_CHANGE_DEPLOYMENT, values)
    if steered.gives_up_replicas:
        connection.execute(_GIVE_UP_REPLICAS, {"id": after.id, "now": now})
    if record_id is not None:
        verb = command.task.rpartition(".")[2].removesuffix("_revision")
        write_note(connection, record_id, after.id, command, verb, steered.said)


def _write_rollout(
    connection: Connection, before: Deployment, rollout: Rollout, steered: Steered, command: DeploymentCommand
) -> None:
    guard = guard_of(steered.deployment)
    values = ROLLOUT.arrays([rollout_values(rollout)], ceiling=guard.ceiling, floor=guard.keep)
    if before.rollout is not None and before.rollout.id == rollout.id:
        connection.execute(_CHANGE_ROLLOUT, {**values, "back_reason": steered.back_reason})
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
        "is_undo": rollout.is_undo,
        "through_freeze": isinstance(command, StartingCommand) and command.through_freeze,
        "actor": command.actor,
        "reason": command.reason,
        "started_at": rollout.started_at,
    }
    connection.execute(_BEGIN_ROLLOUT, {**values, **begun})


def keep_trace(connection: Connection, rollout_id: str | None, traceparent: str | None) -> None:
    """Remember which trace asked for a rollout that began in this transaction."""
    if rollout_id is None or traceparent is None:
        return
    query = "UPDATE rollouts SET traceparent = %s WHERE id = %s AND started_at >= now()"  # when the transaction began
    connection.execute(query, (traceparent, rollout_id))
