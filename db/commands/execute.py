"""The users' writes: each command once, in one transaction, with what it did as its answer."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from db.commands import autoscaling, windows
from db.commands.apply.stored import stored_of
from db.commands.entrances import set_traffic, take_default_entrances
from db.commands.locked import note
from db.commands.policies import set_policy, store_policy
from db.commands.repeated import KEEP_ANSWER, answered, is_asked_again
from db.commands.revisions import add_revision
from db.commands.steering import RULES, steer
from db.commands.subscriptions import delete_subscription, set_subscription
from db.commands.written import keep_trace
from db.connection.engine import in_transaction
from db.cycle.claim import Claim, claim_named
from db.locking.lifecycle import lifecycle_status
from db.outbox.written import write_events
from db.replicas.hosts import forget_host
from db.replicas.reports import RouteReport, apply_reports
from db.replicas.routes import lock_route, record_stopped
from domain.commands.apply import Apply
from domain.commands.base import Command, DeploymentCommand
from domain.commands.deployment import AddRevision, CreateDeployment, SetAutoscalingRules, SetPolicy, SetTraffic
from domain.commands.parts import parts, refuse_beyond, told_of
from domain.commands.replicas import ForgetHost, PushMetric, ReportRoute
from domain.commands.subscriptions import DeleteSubscription, SetSubscription
from domain.installation.tokens import Role
from domain.model.deployment import DeploymentLifecycleStatus
from domain.outbox.cloud_events import CloudEvent, CloudEventType
from domain.replicas.reported import status_told
from domain.strategies import chosen_policy
from domain.words.errors import DeploymentExistsError, RequestIdReusedError

Result = dict[str, Any]

# the status of the deployment as the command leaves it; no row for a command that is not about one
_STATUS = "SELECT lifecycle, sub_step FROM deployments WHERE name = %s AND lifecycle <> 'destroyed'"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command did. `repeated`: it had been done before. `statuses`: of the deployments, for the wake."""

    result: Result
    repeated: bool = False
    statuses: tuple[DeploymentLifecycleStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """How a command came.

    `traceparent`: the trace that asked for it. `asked`: the secrets that hosts were asked for; others that it needs
    raise UnaskedSecretsError; None: what hosts said before counts. `role`: what the parts of an apply may do.
    `is_walled`: what it lets run, when it is new, does not run as a worker's own user.
    """

    traceparent: str | None = None
    asked: Collection[str] | None = None
    role: Role = Role.ADMIN
    is_walled: bool = False


FROM_HERE = Origin()


def execute(engine: Engine, command: Command, patience_seconds: float = 0, sent: Origin = FROM_HERE) -> CommandResult:
    """Carry out a command, or find what it did the first time. Raises the refusals of `domain.words.errors`.

    `patience_seconds`: how long to go on trying while Postgres is away.
    """
    return in_transaction(engine, partial(_execute_once, command=command, sent=sent), patience_seconds)


def _execute_once(connection: Connection, command: Command, sent: Origin) -> CommandResult:
    payload = command.model_dump(mode="json", exclude={"request_id"})
    first = connection.execute(
        "INSERT INTO commands (request_id, name, payload, actor) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (command.request_id, command.task, Jsonb(payload), command.actor),
    )
    claim = _claim(connection, command)  # locked if repeated, too: one wait less
    if not first.rowcount:
        return _answer_again(connection, command, payload)
    if sent.is_walled:  # until the end of the transaction: the default of each revision that it adds
        connection.execute("SELECT set_config('rollway.is_walled', 'on', true)")
    if isinstance(command, Apply):
        return _apply(connection, command, sent)
    return _carry_out(connection, command, claim, sent)


def _claim(connection: Connection, command: Command) -> Claim | None:
    """The deployment that the command steers; None where it steers none."""
    if isinstance(command, DeploymentCommand) and type(command) in RULES:
        return claim_named(connection, command.deployment)
    return None


def _carry_out(connection: Connection, command: Command, claim: Claim | None, sent: Origin) -> CommandResult:
    if claim is not None and isinstance(command, DeploymentCommand):
        result, status = steer(connection, claim, command, sent.asked)
        keep_trace(connection, result["rollout_id"], sent.traceparent)
        return CommandResult(result, statuses=(status,))
    result = _EFFECTS[type(command)](connection, command)
    row = connection.execute(_STATUS, (result.get("deployment"),)).fetchone()
    connection.execute(KEEP_ANSWER, answered(command, result))
    return CommandResult(result, statuses=(lifecycle_status(*row),) if row else ())


def _apply(connection: Connection, command: Apply, sent: Origin) -> CommandResult:
    """All parts of all documents, each with what those before it have left."""
    for name in sorted(document.deployment for document in command.documents):
        claim_named(connection, name)  # in one order, so that two that lock the same wait for each other
    told, statuses = [], list[DeploymentLifecycleStatus]()
    for document in command.documents:
        found = parts(document, stored_of(connection, document), command)
        refuse_beyond(sent.role, found)
        commands = [part.command for part in found]
        done = [_carry_out(connection, each, _claim(connection, each), sent) for each in commands]
        told.append(told_of(document, found, [each.result for each in done]))
        statuses += [status for each in done for status in each.statuses]
    result: Result = {"documents": told}
    connection.execute(KEEP_ANSWER, answered(command, result))
    return CommandResult(result, statuses=tuple(statuses))


def _answer_again(connection: Connection, command: Command, payload: Result) -> CommandResult:
    query = "SELECT payload, result FROM commands WHERE request_id = %s AND name = %s"
    cursor = connection.cursor(row_factory=dict_row)
    row = cursor.execute(query, (command.request_id, command.task)).fetchone()
    if row is None or not is_asked_again(connection, command, row["payload"], payload):
        message = (
            f"request_id {command.request_id!r} was used for another request; every request needs an id of its own"
        )
        raise RequestIdReusedError(message, request_id=command.request_id)
    return CommandResult(row["result"], repeated=True)


def _create_deployment(connection: Connection, command: CreateDeployment) -> Result:
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
    sentence = f"created with {command.desired_replicas} replicas wanted"
    note(connection, row[0], command, "create", sentence)
    write_events(connection, [CloudEvent(CloudEventType.DEPLOYMENT_CREATED, row[0], command.actor, sentence)])
    return {"deployment": command.deployment, "deployment_id": str(row[0]), "version": 1}


def _report_route(connection: Connection, command: ReportRoute) -> Result:
    row = lock_route(connection, command.route_id)
    status = status_told(command.status, row.spec.runtime, row.address or command.address)
    detail = command.detail or f"reported {command.status} by {command.actor}"
    report = RouteReport(row.id, row.deployment_id, row.status, status, reason=detail, address=command.address)
    applied = apply_reports(connection, [report])
    if command.status == "stopped":
        applied |= record_stopped(connection, [row.id])
    return {"deployment": row.deployment, "route": str(row.id), "status": command.status, "applied": bool(applied)}


def _forget_host(connection: Connection, command: ForgetHost) -> Result:
    touched = forget_host(connection, command.host)
    return {"host": command.host, "deployments": len(touched)}


_EFFECTS: dict[type[Command], Callable[[Connection, Any], Result]] = {
    CreateDeployment: _create_deployment,
    AddRevision: add_revision,
    SetPolicy: set_policy,
    SetTraffic: set_traffic,
    SetAutoscalingRules: autoscaling.set_rules,
    PushMetric: autoscaling.push_metric,
    ForgetHost: _forget_host,
    ReportRoute: _report_route,
    SetSubscription: set_subscription,
    DeleteSubscription: delete_subscription,
    **windows.EFFECTS,
}
