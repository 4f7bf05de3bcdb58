"""A steered deployment becomes rows: its own, its rollout's, and the record in the timeline. Values are copied."""

from collections.abc import Mapping

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.commands.locked import KEEP_ANSWER, RECORD, answered, record
from db.cycle.records import DEPLOYMENT, ROLLOUT, assigned, deployment_values, rollout_values
from domain.commands.base import DeploymentCommand, StartingCommand
from domain.model.deployment import Deployment, Rollout
from domain.steering.steered import Asking, Steered

_OF_ROLLOUT = ROLLOUT.called("o")

_END_ROLLOUT = "UPDATE rollouts SET outcome = %s, ended_at = %s, clock_stopped_at = NULL WHERE id = %s"

_CHANGE = f"""
    changed AS (
        UPDATE deployments d
           SET {assigned(DEPLOYMENT)}, version = %(version)s, due_at = %(now)s, waits_for = %(waits_for)s,
               history_id = coalesce(%(record_id)s, d.history_id),
               history_key = CASE WHEN %(record_id)s::uuid IS NULL THEN d.history_key END
          FROM {DEPLOYMENT} WHERE d.id = u.id
        RETURNING d.id, d.rollout_id, d.lifecycle, d.sub_step),
    answered AS ({KEEP_ANSWER})
    {RECORD}
"""

_CHANGE_WITHOUT_ROLLOUT = f"WITH {_CHANGE}"

_CHANGE_WITH_ROLLOUT = f"""
    WITH changed_rollout AS (
        UPDATE rollouts r
           SET {assigned(_OF_ROLLOUT)},
               limits = coalesce(%(limits)s, r.limits), ceiling = %(ceiling)s, floor = %(floor)s,
               back_reason = coalesce(r.back_reason, %(back_reason)s)
          FROM {_OF_ROLLOUT} WHERE r.id = o.id),
    {_CHANGE}
"""

_BEGIN_ROLLOUT = f"""
    WITH begun AS (
        INSERT INTO rollouts ({", ".join(ROLLOUT.types)}, deployment_id, from_revision_id, to_revision_id, strategy,
                              spec, limits, ceiling, floor, count_stopping, is_undo, through_freeze, actor, reason,
                              started_at)
        SELECT o.*, %(deployment_id)s, %(from)s, %(to)s, %(strategy)s, %(spec)s, %(limits)s, %(ceiling)s, %(floor)s,
               %(count_stopping)s, %(is_undo)s, %(through_freeze)s, %(actor)s, %(reason)s, %(started_at)s
          FROM {_OF_ROLLOUT}),
    {_CHANGE}
"""

_FORGET_FAILURES = """
    UPDATE deployments
       SET failed_revision_id = NULL, failed_starts = 0, last_failed_at = NULL, came_up_at = NULL, short_lives = 0
     WHERE id = %s
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


def write_steered(  # noqa: PLR0913  (all that a command leaves behind)
    connection: Connection,
    before: Deployment,
    steered: Steered,
    command: DeploymentCommand,
    asking: Asking,
    result: Mapping[str, object],
) -> None:
    """Write what the command made of the locked deployment `before`, mark it, and keep `result` as the answer."""
    after, now = steered.deployment, asking.at
    rollout, guard = after.rollout, steered.guard
    if before.rollout is not None and steered.ended is not None:
        connection.execute(_END_ROLLOUT, (steered.ended.value, now, before.rollout.id))
    verb = command.task.rpartition(".")[2].removesuffix("_revision")
    told = {**record(command, verb, steered.said), **answered(command, result), "waits_for": steered.waits_for}
    values = DEPLOYMENT.arrays([deployment_values(after)], version=after.version, now=now, **told)
    if rollout is None or guard is None:
        connection.execute(_CHANGE_WITHOUT_ROLLOUT, values)
    else:
        values |= _OF_ROLLOUT.arrays([rollout_values(rollout)], ceiling=guard.ceiling, floor=guard.keep)
        if before.rollout is not None and before.rollout.id == rollout.id:
            changed = {"back_reason": steered.back_reason, "limits": _changed_limits(before.rollout, rollout)}
            connection.execute(_CHANGE_WITH_ROLLOUT, {**values, **changed})
        else:
            whole = {"deployment_id": after.id, "count_stopping": guard.count_stopping}
            connection.execute(_BEGIN_ROLLOUT, {**values, **whole, **_begun_values(rollout, command)})
    if before.start_failures is not None and after.start_failures is None:
        connection.execute(_FORGET_FAILURES, (after.id,))
    if steered.gives_up_replicas:
        connection.execute(_GIVE_UP_REPLICAS, {"id": after.id, "now": now})


def _changed_limits(before: Rollout, after: Rollout) -> Jsonb | None:
    """None leaves what is stored, be it what only a newer release reads."""
    limits = after.policy.limits
    return None if limits == before.policy.limits else Jsonb(limits.model_dump(mode="json"))


def _begun_values(rollout: Rollout, command: DeploymentCommand) -> dict[str, object]:
    policy = rollout.policy.as_json()
    return {
        "from": rollout.from_revision_id,
        "to": rollout.to_revision_id,
        "strategy": policy["strategy"],
        "spec": Jsonb(policy["spec"]),
        "limits": Jsonb(policy["limits"]),
        "is_undo": rollout.is_undo,
        "through_freeze": isinstance(command, StartingCommand) and command.through_freeze,
        "reason": command.reason,
        "started_at": rollout.started_at,
    }


def keep_trace(connection: Connection, rollout_id: str | None, traceparent: str | None) -> None:
    """Remember which trace asked for a rollout that began in this transaction."""
    if rollout_id is None or traceparent is None:
        return
    query = "UPDATE rollouts SET traceparent = %s WHERE id = %s AND started_at >= now()"  # when the transaction began
    connection.execute(query, (traceparent, rollout_id))
