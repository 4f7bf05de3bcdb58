"""Ways to steer a rollout: pause, resume, promote, abort, undo, retry. Each valid in named states only."""

from typing import Any

from psycopg import Connection

from db.commands.activation import activate_revision
from db.commands.locked import lock_named, note, touch
from db.commands.rollouts import turn_back
from domain.commands import Abort, ActivateRevision, DeploymentCommand, Pause, Promote, Resume, Retry, Undo
from domain.errors import NoPreviousRevisionError, NoRolloutError, WrongStateError
from domain.model import Deployment, DeploymentSubStep, Rollout
from domain.strategies import STRATEGIES

Result = dict[str, Any]

_PREVIOUS = """
    SELECT v.name FROM rollouts o JOIN revisions v ON v.id = o.from_revision_id
     WHERE o.deployment_id = %s AND o.to_revision_id = %s AND o.outcome = 'completed'
     ORDER BY o.ended_at DESC LIMIT 1
"""

_LAST_ROLLOUT = """
    SELECT v.name, o.outcome FROM rollouts o JOIN revisions v ON v.id = o.to_revision_id
     WHERE o.deployment_id = %s ORDER BY o.started_at DESC LIMIT 1
"""


def pause(connection: Connection, command: Pause) -> Result:
    """Raises NoRolloutError. Pausing again is no error."""
    deployment, rollout = _with_rollout(connection, command, "pause")
    if deployment.paused_at is not None:
        return {**_answer(deployment, rollout), "already": True}
    connection.execute("UPDATE deployments SET paused_at = clock_timestamp() WHERE id = %s", (deployment.id,))
    connection.execute(
        "UPDATE rollouts SET clock_stopped_at = coalesce(clock_stopped_at, clock_timestamp()) WHERE id = %s",
        (rollout.id,),
    )
    return _done(connection, deployment, command, "paused")


def resume(connection: Connection, command: Resume) -> Result:
    """Raises NoRolloutError, and WrongStateError when nothing is paused. The next cycle moves the deadlines."""
    deployment, _ = _with_rollout(connection, command, "resume")
    if deployment.paused_at is None:
        raise WrongStateError(f"{deployment.name} is not paused; only a paused rollout can be resumed")
    connection.execute("UPDATE deployments SET paused_at = NULL WHERE id = %s", (deployment.id,))
    return _done(connection, deployment, command, "resumed")


def promote(connection: Connection, command: Promote) -> Result:
    """Raises NoRolloutError, and WrongStateError where a promotion means nothing. Asking again is no error."""
    deployment, rollout = _with_rollout(connection, command, "promote")
    strategy = STRATEGIES.get(rollout.policy.strategy)
    if strategy is None or not strategy.can_be_promoted:
        raise WrongStateError(f"a {rollout.policy.strategy} moves the traffic by itself; only blue_green is promoted")
    if deployment.status.sub_step is DeploymentSubStep.ROLLING_BACK:
        raise WrongStateError(f"{deployment.name} is rolling back; 'rollway retry {deployment.name}' turns it forward")
    if deployment.paused_at is not None:
        raise WrongStateError(f"{deployment.name} is paused; resume it, then promote it")
    if rollout.promote_requested:
        return {**_answer(deployment, rollout), "already": True}
    connection.execute("UPDATE rollouts SET promote_requested = true WHERE id = %s", (rollout.id,))
    return _done(connection, deployment, command, "promoted as soon as green is healthy")


def abort(connection: Connection, command: Abort) -> Result:
    """Raises NoRolloutError. Aborting what rolls back already is no error."""
    deployment, rollout = _with_rollout(connection, command, "abort")
    if deployment.status.sub_step is DeploymentSubStep.ROLLING_BACK and deployment.paused_at is None:
        return {**_answer(deployment, rollout), "already": True}
    turn_back(connection, deployment, _why(command, "aborted"))
    return _done(connection, deployment, command, "aborted, going back")


def undo(connection: Connection, command: Undo) -> Result:
    """Raises NoPreviousRevisionError, and what an activation raises. In the middle of a rollout it is an abort."""
    deployment = lock_named(connection, command.deployment, command.expected_version)
    if deployment.rollout is not None and command.revision is None:
        turn_back(connection, deployment, _why(command, "undone"))
        return _done(connection, deployment, command, "undone, going back")
    revision = command.revision or _named(connection, _PREVIOUS, deployment)
    if revision is None:
        raise NoPreviousRevisionError(
            f"no rollout has led to the current revision of {deployment.name}; name the revision to go back to",
            deployment=deployment.name,
        )
    return activate_revision(connection, deployment, _activation(command, revision))


def retry(connection: Connection, command: Retry) -> Result:
    """Raises NoRolloutError when the last rollout was not rolled back."""
    deployment = lock_named(connection, command.deployment, command.expected_version)
    row = connection.execute(_LAST_ROLLOUT, (deployment.id,)).fetchone()
    name, outcome = row or (None, "none")
    if outcome not in (None, "rolled_back") or name is None:
        raise NoRolloutError(
            f"the last rollout of {deployment.name} is {outcome}; only one that was rolled back can be retried",
            deployment=deployment.name,
        )
    rolling_back = deployment.status.sub_step is DeploymentSubStep.ROLLING_BACK
    return activate_revision(connection, deployment, _activation(command, name, supersede=rolling_back))


def _with_rollout(connection: Connection, command: DeploymentCommand, verb: str) -> tuple[Deployment, Rollout]:
    deployment = lock_named(connection, command.deployment, command.expected_version)
    if deployment.rollout is None:
        raise NoRolloutError(
            f"{deployment.name} is {deployment.status}: there is no rollout to {verb}", deployment=deployment.name
        )
    return deployment, deployment.rollout


def _done(connection: Connection, deployment: Deployment, command: DeploymentCommand, said: str) -> Result:
    note(connection, deployment.id, command, command.task.rpartition(".")[2], said)
    rollout_id = str(deployment.rollout.id) if deployment.rollout else None
    version = touch(connection, deployment)
    return {"deployment": deployment.name, "rollout_id": rollout_id, "version": version, "already": False}


def _answer(deployment: Deployment, rollout: Rollout) -> Result:
    return {"deployment": deployment.name, "rollout_id": str(rollout.id), "version": deployment.version}


def _why(command: DeploymentCommand, what: str) -> str:
    return f"{what} by {command.actor}" + (f": {command.reason}" if command.reason else "")


def _named(connection: Connection, query: str, deployment: Deployment) -> str | None:
    row = connection.execute(query, (deployment.id, deployment.current_revision_id)).fetchone()
    return row[0] if row else None


def _activation(command: DeploymentCommand, revision: str, *, supersede: bool = False) -> ActivateRevision:
    return ActivateRevision(
        request_id=command.request_id,
        actor=command.actor,
        reason=command.reason,
        deployment=command.deployment,
        revision=revision,
        supersede=supersede,
    )
