"""Policies: the commands that make a deployment and set one, and the policy that a rollout begins with."""

import json
from functools import lru_cache
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.commands.guarded_write import lock_named, note, touch
from db.commands.traffic_settings import take_default_entrances
from db.outbox import write_events
from domain.commands.deployment_commands import CreateDeployment, DeploymentExistsError, SetPolicy
from domain.model.policy import DeploymentPolicy
from domain.outbox.cloud_events import CloudEvent, CloudEventType
from domain.strategies.builtin import chosen_policy, parse_policy
from domain.text.numbers import number_of


def set_policy(connection: Connection, command: SetPolicy) -> dict[str, Any]:
    """Set the policy of rollouts that begin from now on. Raises DeploymentNotFoundError and StaleVersionError."""
    policy = chosen_policy(command.policy) if command.policy is not None else None
    deployment = lock_named(connection, command.deployment, command.expected_version)
    store_policy(connection, deployment.id, policy)
    message = f"policy {policy.strategy}, for rollouts from now on" if policy else "no policy"
    note(connection, deployment.id, command, "set_policy", message)
    version = touch(connection, deployment)
    return {"deployment": command.deployment, "policy": policy.as_json() if policy else None, "version": version}


def store_policy(connection: Connection, deployment_id: UUID, policy: DeploymentPolicy | None) -> None:
    """The part that applies outside a rollout is in the deployment's own row, and applies at once."""
    counts, may_surge = (policy.spec.count_stopping, policy.spec.may_surge) if policy else (False, True)
    query = "UPDATE deployments SET count_stopping = %s, may_surge = %s WHERE id = %s"
    connection.execute(query, (counts, may_surge, deployment_id))
    if policy is None:
        connection.execute("DELETE FROM policies WHERE deployment_id = %s", (deployment_id,))
        return
    values = policy.as_json()
    connection.execute(
        """
        INSERT INTO policies (deployment_id, strategy, spec, limits) VALUES (%s, %s, %s, %s)
        ON CONFLICT (deployment_id) DO UPDATE
           SET strategy = excluded.strategy, spec = excluded.spec, limits = excluded.limits,
               updated_at = clock_timestamp()
        """,
        (deployment_id, values["strategy"], Jsonb(values["spec"]), Jsonb(values["limits"])),
    )


@lru_cache(maxsize=1024)
def read_policy(strategy: str, spec: str, limits: str) -> DeploymentPolicy:
    """A stored one, its settings as JSON text. Raises InvalidInputError for one that this release cannot read.

    Most deployments of a fleet share a few policies.
    """
    return parse_policy({"strategy": strategy, "spec": json.loads(spec), "limits": json.loads(limits)})


def create_deployment(connection: Connection, command: CreateDeployment) -> dict[str, Any]:
    """Create a deployment with its policy, and without a revision. Raises DeploymentExistsError."""
    policy = chosen_policy(command.policy) if command.policy is not None else None
    cursor = connection.execute(
        """
        INSERT INTO deployments (name, desired_replicas, due_at, reason)
        VALUES (%s, %s, clock_timestamp(), 'waiting for a first revision')
        ON CONFLICT (name) WHERE lifecycle <> 'destroyed' DO NOTHING
        RETURNING id
        """,
        (command.deployment, command.desired_replicas),
    )
    row = cursor.fetchone()
    if row is None:
        raise DeploymentExistsError(
            f"a deployment called {command.deployment} exists already; choose another name, or change that one",
            deployment=command.deployment,
        )
    take_default_entrances(connection, row[0], command.deployment)
    store_policy(connection, row[0], policy)
    sentence = f"created with {number_of(command.desired_replicas, 'replica')} wanted"
    note(connection, row[0], command, "create", sentence)
    write_events(connection, [CloudEvent(CloudEventType.DEPLOYMENT_CREATED, row[0], command.actor, sentence)])
    return {"deployment": command.deployment, "deployment_id": str(row[0]), "version": 1}
