"""Activating a revision: what `domain.activation` decides becomes rows."""

from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row

from db.commands.locked import note, touch
from db.commands.rollouts import begin_deployment, end_rollout, turn_back
from domain.activation import Activation, ActivationRequest, decide_activation
from domain.commands import ActivateRevision
from domain.errors import RevisionNotFoundError
from domain.model import Deployment, RolloutOutcome
from domain.policy import DeploymentPolicy
from domain.strategies import parse_policy


def activate_revision(connection: Connection, deployment: Deployment, command: ActivateRevision) -> dict[str, Any]:
    """Carry out an activation of a locked deployment. Raises RevisionNotFoundError and what the decision raises."""
    request = _request(connection, deployment, command)
    activation = decide_activation(deployment, request)
    rollout_id = _carry_out(connection, deployment, request, activation, command)
    answer = {
        "deployment": deployment.name,
        "revision": request.revision_name,
        "activation": activation.value,
        "rollout_id": str(rollout_id) if rollout_id else None,
    }
    if activation is Activation.ALREADY_ACTIVE:
        return {**answer, "version": deployment.version}
    said = f"{request.revision_name}: {activation.value.replace('_', ' ')}"
    note(connection, deployment.id, command, "activate", said)
    return {**answer, "version": touch(connection, deployment)}


def _carry_out(
    connection: Connection,
    deployment: Deployment,
    request: ActivationRequest,
    activation: Activation,
    command: ActivateRevision,
) -> UUID | None:
    """The id of the rollout that is now under way, if any."""
    match activation:
        case Activation.FIRST | Activation.MOVED:
            _move_pointer(connection, deployment, request.revision_id, command.desired_replicas)
            return None
        case Activation.SUPERSEDED if request.revision_id == deployment.current_revision_id:
            return turn_back(connection, deployment, f"{command.actor} asked for {command.revision} again")
        case Activation.SUPERSEDED:
            end_rollout(connection, deployment, RolloutOutcome.SUPERSEDED)
            return begin_deployment(connection, deployment, request, command)
        case Activation.BEGUN:
            return begin_deployment(connection, deployment, request, command)
        case Activation.RESUMED:
            return deployment.rollout.id if deployment.rollout else None
        case Activation.CONVERGING | Activation.ALREADY_ACTIVE:
            return None


def _request(connection: Connection, deployment: Deployment, command: ActivateRevision) -> ActivationRequest:
    cursor = connection.cursor(row_factory=dict_row)
    revisions = cursor.execute(
        "SELECT id, name FROM revisions WHERE deployment_id = %s AND (name = %s OR id = %s)",
        (deployment.id, command.revision, deployment.deploying_revision_id),
    ).fetchall()
    named = {row["name"]: row["id"] for row in revisions}
    if command.revision not in named:
        raise RevisionNotFoundError(
            f"{deployment.name} has no revision {command.revision}; 'rollway status {deployment.name}' lists them",
            deployment=deployment.name,
            revision=command.revision,
        )
    deploying = next((row["name"] for row in revisions if row["id"] == deployment.deploying_revision_id), None)
    policy = _policy(connection, deployment)
    return ActivationRequest(named[command.revision], command.revision, deploying, policy, command.supersede)


def _policy(connection: Connection, deployment: Deployment) -> DeploymentPolicy | None:
    """The deployment's policy; a rollout that is superseded lends its own when the policy was removed meanwhile."""
    query = "SELECT strategy, spec, limits FROM policies WHERE deployment_id = %s"
    row = connection.cursor(row_factory=dict_row).execute(query, (deployment.id,)).fetchone()
    if row is not None:
        return parse_policy(row)
    return deployment.rollout.policy if deployment.rollout else None


def _move_pointer(connection: Connection, deployment: Deployment, revision_id: UUID, desired: int | None) -> None:
    connection.execute(
        """
        UPDATE deployments
           SET current_revision_id = %s, desired_replicas = coalesce(%s, desired_replicas),
               degraded_reason = NULL, retry_at = NULL
         WHERE id = %s
        """,
        (revision_id, desired, deployment.id),
    )
