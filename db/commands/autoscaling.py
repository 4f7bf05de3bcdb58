"""Autoscaling in Postgres: the commands for rules and pushed metrics, and what the look at metrics reads and writes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.commands.guarded_write import lock_named, note, touch
from db.connection.transactions import database_now
from db.cycle.autoscaling_rules import replace_rules, rules_of, store_values
from db.locking.row_locks import mark_unheld
from db.locking.upstream import SPOKEN
from domain.autoscaling.rule import NO_AUTOSCALING, AutoscalingRule, MetricValue
from domain.autoscaling.scaling_decision import evaluate_rules
from domain.commands.deployment_commands import SetAutoscalingRules
from domain.commands.replica_commands import PushMetric
from domain.model.deployment import Deployment
from domain.text.errors import InvalidInputError
from domain.traffic.tls import ReplicaTls
from domain.traffic.wire import known_wire, replica_wire

Result = dict[str, Any]

_WATCHED = f"""
    SELECT d.id, d.desired_replicas, d.last_autoscaled_at,
           ARRAY(SELECT r.address
                   FROM routes r
                  WHERE r.deployment_id = d.id AND r.revision_id = d.current_revision_id AND r.status = 'healthy'
                    AND r.traffic_status = 'active' AND r.address IS NOT NULL
                  ORDER BY r.id), d.name, {SPOKEN}
      FROM deployments d JOIN revisions v ON v.id = d.current_revision_id
     WHERE d.lifecycle = 'ready' AND (d.retry_at IS NULL OR d.retry_at <= clock_timestamp())
       AND EXISTS (SELECT FROM autoscaling_rules a WHERE a.deployment_id = d.id)
     ORDER BY d.id
"""


@dataclass(frozen=True, slots=True)
class WatchedDeployment:
    """A ready deployment with its rules, the values that they read, and the addresses of its serving replicas.

    `tls`: of those replicas; None: they speak clear text.
    """

    id: UUID
    desired_replicas: int
    last_autoscaled_at: datetime | None
    addresses: Sequence[str]
    rules: tuple[AutoscalingRule, ...]
    metrics: tuple[MetricValue, ...]
    tls: ReplicaTls | None = None

    def fires(self, values: Iterable[MetricValue], now: datetime) -> bool:
        """Whether a rule fires, given also what was measured just now."""
        metrics = (*self.metrics, *values)
        return evaluate_rules(self.rules, metrics, self.desired_replicas, self.last_autoscaled_at, now) is not None


def watched_deployments(connection: Connection) -> tuple[list[WatchedDeployment], datetime]:
    """Every deployment that a rule may move, and the database's time before any replica was asked."""
    rows = connection.cursor(binary=True).execute(_WATCHED).fetchall()
    now = database_now(connection)
    rules = rules_of(connection, [deployment_id for deployment_id, *_ in rows]) if rows else {}
    deployments = []
    for deployment_id, desired, autoscaled_at, addresses, name, wire, ca in rows:
        state, tls = rules.get(deployment_id, NO_AUTOSCALING), replica_wire(name, known_wire(wire), ca).tls
        facts = (desired, autoscaled_at, addresses, state.rules, state.metrics, tls)
        deployments.append(WatchedDeployment(deployment_id, *facts))
    return deployments, now


def store_and_mark(
    connection: Connection, by_deployment: Mapping[UUID, Sequence[MetricValue]], fires: Sequence[UUID]
) -> frozenset[UUID]:
    """Keep what was measured, and mark the deployments whose rules fire; returns those that were not marked before."""
    store_values(
        connection, ((deployment_id, value) for deployment_id, values in by_deployment.items() for value in values)
    )
    return _mark(connection, fires) if fires else frozenset()


def set_rules(connection: Connection, command: SetAutoscalingRules) -> Result:
    """Replace the rules. Raises DeploymentNotFoundError and StaleVersionError."""
    deployment = lock_named(connection, command.deployment, command.expected_version)
    replace_rules(connection, deployment.id, command.rules)
    message = "; ".join(map(str, command.rules)) or "no rules"
    note(connection, deployment.id, command, "set_autoscaling_rules", f"autoscaling: {message}")
    version = touch(connection, deployment)
    rules = [rule.model_dump(mode="json") for rule in command.rules]
    return {"deployment": command.deployment, "rules": rules, "version": version}


def push_metric(connection: Connection, command: PushMetric) -> Result:
    """Keep the value, and mark the deployment when a rule fires. Raises InvalidInputError when no rule reads it."""
    deployment = lock_named(connection, command.deployment)
    value = MetricValue(command.metric, command.value, database_now(connection))
    if not store_values(connection, [(deployment.id, value)]):
        raise InvalidInputError(
            f"metric: no rule of {command.deployment} with source 'pushed' reads {command.metric}; "
            "set_autoscaling_rules makes one",
            field="metric",
        )
    fires = _fires(deployment, value)
    if fires:
        _mark(connection, [deployment.id])
    return {"deployment": command.deployment, "metric": command.metric, "value": command.value, "fires": fires}


def _mark(connection: Connection, ids: Sequence[UUID]) -> frozenset[UUID]:
    """Mark the deployment for check_replica, which decides again."""
    return mark_unheld(connection, "d.id = ANY(%(ids)s) AND d.lifecycle = 'ready'", {"ids": list(ids)})


def _fires(deployment: Deployment, value: MetricValue) -> bool:
    """The rules are in the snapshot only of a ready deployment."""
    state = deployment.autoscaling
    metrics = (*state.metrics, value)
    return evaluate_rules(state.rules, metrics, deployment.desired_replicas, state.last_at, value.at) is not None
