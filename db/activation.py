"""Activating a revision: what `domain.activation` decides becomes rows."""

from typing import Any
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from sqlalchemy import Connection

from db.engine import driver
from db.locked import note, touch
from domain.activation import Activation, ActivationRequest, decide_activation
from domain.commands import ActivateRevision, Command
from domain.errors import RevisionNotFoundError
from domain.model import Deployment, RolloutOutcome
from domain.policy import DeploymentPolicy
from domain.strategies import parse_policy


def activate_revision(connection: Connection, deployment: Deployment, command: ActivateRevision) -> dict[str, Any]:
    """Carry out an activation of a locked deployment. Raises RevisionNotFoundError and what the decision raises."""
    request = _request(connection, deployment, command)
    activation = decide_activation(deployment, request)
    rollout_id = deployment.rollout.id if deployment.rollout and activation is Activation.RESUMED else None
    match activation:
        case Activation.FIRST | Activation.MOVED:
            _move_pointer(connection, deployment.id, request.revision_id)
        case Activation.SUPERSEDED if request.revision_id == deployment.current_revision_id:
            rollout_id = turn_back(connection, deployment, command)
        case Activation.SUPERSEDED:
            end_rollout(connection, deployment, RolloutOutcome.SUPERSEDED)
            rollout_id = begin_deployment(connection, deployment, request, command)
        case Activation.BEGUN:
            rollout_id = begin_deployment(connection, deployment, request, command)
        case Activation.RESUMED | Activation.CONVERGING | Activation.ALREADY_ACTIVE:
            pass
    answer = {
        "deployment": deployment.name,
        "revision": request.revision_name,
        "activation": activation.value,
        "rollout_id": str(rollout_id) if rollout_id else None,
    }
    if activation is Activation.ALREADY_ACTIVE:
        return {**answer, "version": deployment.version}
    note(
        connection, deployment.id, command, "activate", f"{request.revision_name}: {activation.value.replace('_', ' ')}"
    )
    return {**answer, "version": touch(connection, deployment)}


def begin_deployment(
    connection: Connection, deployment: Deployment, request: ActivationRequest, command: Command
) -> UUID:
    """Open a rollout with its clocks and its own copy of the policy. Returns its id."""
    policy = request.policy
    if policy is None:
        raise ValueError("a rollout needs a policy")
    stored = policy.as_json()
    row = (
        driver(connection)
        .execute(
            """
        WITH begun AS (
            INSERT INTO rollouts (endpoint_id, from_revision_id, to_revision_id, strategy, spec, limits,
                                  desired_at_start, actor, reason, started_at, last_progress_at, deadline)
            SELECT e.id, e.current_revision_id, %(to)s, %(strategy)s, %(spec)s, %(limits)s, e.desired_replicas,
                   %(actor)s, %(reason)s, t.now, t.now, t.now + %(timeout)s * interval '1 second'
              FROM endpoints e, (SELECT clock_timestamp() AS now) t
             WHERE e.id = %(id)s
            RETURNING id, endpoint_id, started_at)
        UPDATE endpoints e
           SET lifecycle = 'deploying', sub_step = 'provisioning', deploying_revision_id = %(to)s,
               rollout_id = begun.id, phase_started_at = begun.started_at, phase_attempts = 0, paused_at = NULL,
               degraded_reason = NULL, retry_at = NULL
          FROM begun
         WHERE e.id = begun.endpoint_id
        RETURNING begun.id
        """,
            {
                "id": deployment.id,
                "to": request.revision_id,
                "strategy": policy.strategy,
                "spec": Jsonb(stored["spec"]),
                "limits": Jsonb(stored["limits"]),
                "actor": command.actor,
                "reason": command.reason,
                "timeout": policy.limits.timeout_seconds,
            },
        )
        .fetchone()
    )
    assert row is not None  # noqa: S101  (the row is locked, so it is there)
    rollout_id: UUID = row[0]
    return rollout_id


def turn_back(connection: Connection, deployment: Deployment, command: ActivateRevision) -> UUID | None:
    """Leave a rollout for the revision it came from: no rollout of its own, but the way back. Returns its id."""
    driver(connection).execute(
        """
        WITH turned AS (
            UPDATE rollouts SET back_reason = coalesce(back_reason, %(why)s), clock_stopped_at = NULL
             WHERE endpoint_id = %(id)s AND ended_at IS NULL)
        UPDATE endpoints
           SET sub_step = 'rolling_back', paused_at = NULL, phase_attempts = 0,
               phase_started_at = CASE sub_step WHEN 'rolling_back' THEN phase_started_at ELSE clock_timestamp() END
         WHERE id = %(id)s
        """,
        {"id": deployment.id, "why": f"{command.actor} asked for {command.revision} again"},
    )
    return deployment.rollout.id if deployment.rollout else None


def end_rollout(connection: Connection, deployment: Deployment, outcome: RolloutOutcome) -> None:
    """Close the deployment's open rollout; its pointers are the caller's to move, in the same transaction."""
    driver(connection).execute(
        """
        UPDATE rollouts SET outcome = %s, ended_at = clock_timestamp(), clock_stopped_at = NULL
         WHERE endpoint_id = %s AND ended_at IS NULL
        """,
        (outcome.value, deployment.id),
    )


def _request(connection: Connection, deployment: Deployment, command: ActivateRevision) -> ActivationRequest:
    cursor = driver(connection).cursor(row_factory=dict_row)
    revisions = cursor.execute(
        "SELECT id, name FROM revisions WHERE endpoint_id = %s AND (name = %s OR id = %s)",
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
    query = "SELECT strategy, spec, limits FROM policies WHERE endpoint_id = %s"
    row = driver(connection).cursor(row_factory=dict_row).execute(query, (deployment.id,)).fetchone()
    if row is not None:
        return parse_policy(row)
    return deployment.rollout.policy if deployment.rollout else None


def _move_pointer(connection: Connection, deployment_id: UUID, revision_id: UUID) -> None:
    driver(connection).execute(
        "UPDATE endpoints SET current_revision_id = %s, degraded_reason = NULL, retry_at = NULL WHERE id = %s",
        (revision_id, deployment_id),
    )
