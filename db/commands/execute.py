"""The writes of users: each command once, in one transaction, with what it did as its answer.

Where another transaction holds the deployment, a command that cannot wait is kept as a pending command, which the
next transaction that claims the deployment carries out.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.errors import LockNotAvailable
from psycopg.rows import class_row
from psycopg.types.json import Jsonb
from sqlalchemy import Engine

from db.commands import autoscaling, fleet_rules, webhooks
from db.commands.apply.difference import stored_of
from db.commands.apply.settings_undo import keep_settings_release, mark_settings_undone, settings_to_put_back
from db.commands.guarded_write import KEEP_ANSWER, answer_again, answer_values, lock_named, note
from db.commands.new_revisions import add_revision
from db.commands.policies import create_deployment, set_policy
from db.commands.steering import HEARD, keep_trace, steer
from db.commands.traffic_settings import refuse_foreign, set_maintenance, set_traffic
from db.connection.transactions import in_transaction
from db.cycle.claim import Claim, claim_named
from db.fleet_history import record_deed
from db.locking.row_locks import SKIPPING_HELD, holder_of, lock_unheld, refusal_of_held
from db.locking.statuses import IS_COUNTED_ON, lifecycle_status
from db.replicas import report_commands
from db.unreachable import AWAY
from db.views.rollout_records import sections
from domain.commands.apply.document import Apply, Document
from domain.commands.apply.expansion import Part, notes, parts, refuse_beyond, settings_alone, told_of
from domain.commands.base import Command, DeploymentCommand
from domain.commands.deeds import deed, target_of
from domain.commands.deployment_commands import (
    AddRevision,
    CreateDeployment,
    SetAutoscalingRules,
    SetMaintenance,
    SetPolicy,
    SetTraffic,
)
from domain.commands.registry import parse_command
from domain.commands.replica_commands import PushMetric
from domain.commands.rollout_commands import Undo
from domain.commands.steering_command import SteeringCommand
from domain.installation.tokens import Role
from domain.model.states import DeploymentLifecycleStatus
from domain.text.errors import DeploymentNotFoundError, RollwayError

_WISHES = "SELECT w.* FROM wishes w JOIN deployments d ON d.id = w.deployment_id"
_IS_LAST = f"""
    SELECT FROM rollouts o JOIN deployments d ON d.id = o.deployment_id
     WHERE o.id = %s AND {IS_COUNTED_ON}
       AND NOT EXISTS (SELECT FROM rollouts n WHERE n.deployment_id = d.id AND n.started_at > o.started_at)
"""
_NOTE = """
    WITH asked AS (SELECT id, version, rollout_id FROM deployments WHERE name = %s AND lifecycle <> 'destroyed'),
    noted AS (
        INSERT INTO wishes (deployment_id, request_id, task, payload) SELECT id, %s, %s, %s FROM asked
        ON CONFLICT DO NOTHING)
    SELECT version, rollout_id FROM asked
"""


class CannotWaitError(Exception):
    """Somebody holds the deployment of that name, and the command is one that is heard nevertheless."""


class PendingCommand(NamedTuple):
    """A command that waits until the deployment's row is free; carried out in the order of the numbers.

    `rollout_id`: Rollway's own, good as long as this rollout has ended and is the last one; None: a person's.
    """

    number: int
    deployment_id: UUID
    request_id: str
    task: str
    payload: dict[str, Any]
    rollout_id: UUID | None

    @property
    def command(self) -> Command:
        """The command that was asked for. Raises what `parse_command` raises of what only a newer release knows."""
        return parse_command(self.task, {**self.payload, "request_id": self.request_id})


def names_of(command: Command) -> list[str]:
    about = command.documents if isinstance(command, Apply) else (command,)
    return [each.deployment for each in about if isinstance(each, (Document, DeploymentCommand))]


def enqueue(connection: Connection, command: Command, name: str) -> dict[str, Any]:
    """Keep the command for the deployment of that name, whose row is held; returns the answer."""
    pending = (command.request_id, command.task, Jsonb(command.model_dump(mode="json", exclude={"request_id"})))
    row = connection.execute(_NOTE, (name, *pending)).fetchone()
    if row is None:
        raise DeploymentNotFoundError(f"{name} has been destroyed meanwhile", deployment=name)
    version, rollout_id = row
    _, holder = holder_of(connection, [name])
    return {
        "deployment": name,
        "rollout_id": str(rollout_id) if rollout_id else None,
        "version": version,
        "already": False,
        "noted": holder.sentence(name),
    }


def pending_of(connection: Connection, name: str) -> list[PendingCommand]:
    """The pending commands of this deployment, which the caller has locked."""
    cursor = connection.cursor(row_factory=class_row(PendingCommand))
    return cursor.execute(f"{_WISHES} WHERE d.name = %s ORDER BY w.number", (name,)).fetchall()


def next_pending(connection: Connection, after: int) -> PendingCommand | None:
    """The first pending command after this number whose deployment nobody holds."""
    cursor = connection.cursor(row_factory=class_row(PendingCommand))
    query = f"{_WISHES} WHERE w.number > %s ORDER BY w.number LIMIT 1 {SKIPPING_HELD}"
    return cursor.execute(query, (after,)).fetchone()


def is_good(connection: Connection, pending: PendingCommand) -> bool:
    """Whether its reason still holds, until the transaction ends. Raises CannotWaitError."""
    if pending.rollout_id is None:
        return True
    if not lock_unheld(connection, pending.deployment_id):
        raise CannotWaitError
    return connection.execute(_IS_LAST, (pending.rollout_id,)).fetchone() is not None


def drop(connection: Connection, pending: PendingCommand) -> bool:
    """Delete it. False: another transaction has carried it out."""
    return connection.execute("DELETE FROM wishes WHERE number = %s", (pending.number,)).rowcount == 1


def give_up(connection: Connection, pending: PendingCommand, why: str) -> None:
    """Drop one that cannot be carried out, and say so in the history, since nobody waits for the answer."""
    drop(connection, pending)
    command = Command.model_construct(
        request_id=pending.request_id, actor=pending.payload["actor"], reason=pending.payload["reason"]
    )
    note(connection, pending.deployment_id, command, pending.task.rpartition(".")[2], f"refused: {why}")


Result = dict[str, Any]
ClaimBy = Callable[[Connection, str], Claim]

# the status of the deployment as the command leaves it; no row for a command that is not about one
_STATUS = "SELECT lifecycle, sub_step FROM deployments WHERE name = %s AND lifecycle <> 'destroyed'"


@dataclass(frozen=True, slots=True)
class CommandResult:
    """The result of a command. `repeated`: it had been done before. `statuses`: of the deployments, for the wake."""

    result: Result
    repeated: bool = False
    statuses: tuple[DeploymentLifecycleStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """The way a command came.

    `traceparent`: the trace that asked for it. `secrets`: the secrets that hosts were asked for; others that it needs
    raise UnaskedSecretsError; None: what hosts said before counts. `role`: what the parts of an apply may do.
    `sees`: the deployments that it may be about; none: all. What one that sees some lets run, when it is new, does not
    run as a worker's own user.
    """

    traceparent: str | None = None
    secrets: Collection[str] | None = None
    role: Role = Role.ADMIN
    sees: tuple[str, ...] = ()


FROM_HERE = Origin()


def execute(engine: Engine, command: Command, patience_seconds: float = 0, origin: Origin = FROM_HERE) -> CommandResult:
    """Carry out a command, or find what it did the first time. Raises the refusals of `domain`.

    `patience_seconds`: the time for which it is tried while Postgres is away.
    """
    try:
        return in_transaction(engine, partial(_execute_once, command=command, origin=origin), patience_seconds)
    except CannotWaitError as held:
        return CommandResult(in_transaction(engine, partial(enqueue, command=command, name=str(held))))
    except LockNotAvailable:
        raise in_transaction(engine, partial(refusal_of_held, names=names_of(command))) from None


def execute_pending(engine: Engine) -> frozenset[DeploymentLifecycleStatus]:
    """Carry out the pending commands of deployments that are free again; returns the statuses that follow."""
    statuses, number = frozenset[DeploymentLifecycleStatus](), 0
    while (pending := in_transaction(engine, partial(next_pending, after=number))) is not None:
        number = pending.number
        try:
            statuses |= frozenset(in_transaction(engine, partial(_execute_pending, pending=pending)))
        except (*AWAY, CannotWaitError):
            break  # held again, or Postgres is away: the next look carries it out
        except Exception as error:  # noqa: BLE001  (a command that cannot be carried out must not hold up the others)
            in_transaction(engine, partial(give_up, pending=pending, why=str(error).partition("\n")[0]))
    return statuses


def _execute_pending(connection: Connection, pending: PendingCommand) -> tuple[DeploymentLifecycleStatus, ...]:
    """Carry it out; a refusal goes to the history, as nobody waits for the answer."""
    if not drop(connection, pending) or not is_good(connection, pending):
        return ()
    connection.execute("SAVEPOINT command")
    try:
        return _execute_once(connection, pending.command, FROM_HERE, claim_named).statuses
    except RollwayError as refusal:
        connection.execute("ROLLBACK TO SAVEPOINT command")
        give_up(connection, pending, refusal.message)
        return ()


def _claim_after_wishes(connection: Connection, name: str) -> Claim:
    """Claim the deployment once its pending commands are carried out."""
    claim = claim_named(connection, name)
    if not claim.has_pending_commands:
        return claim
    for pending in pending_of(connection, name):
        _execute_pending(connection, pending)
    return claim_named(connection, name)


def _execute_once(
    connection: Connection, command: Command, origin: Origin, claim_by: ClaimBy = _claim_after_wishes
) -> CommandResult:
    payload = command.model_dump(mode="json", exclude={"request_id"})
    first = connection.execute(
        "INSERT INTO commands (request_id, name, payload, actor) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (command.request_id, command.task, Jsonb(payload), command.actor),
    )
    claim = _claim(connection, command, claim_by)  # locked if repeated, too: one wait less
    if not first.rowcount:
        return CommandResult(answer_again(connection, command, payload), repeated=True)
    if origin.sees:  # until the end of the transaction: the default of each revision that it adds
        connection.execute("SELECT set_config('rollway.is_walled', 'on', true)")
    if isinstance(command, Apply):
        return _apply(connection, command, origin)
    if isinstance(command, Undo) and command.revision is None and (result := _put_back(connection, command, origin)):
        return result
    return _carry_out(connection, command, claim, origin)


def _claim(connection: Connection, command: Command, claim_by: ClaimBy) -> Claim | None:
    """The deployment that the command steers; None where it steers none."""
    if not isinstance(command, SteeringCommand):
        return None
    try:
        return claim_by(connection, command.deployment)
    except LockNotAvailable:
        if type(command) in HEARD:
            raise CannotWaitError(command.deployment) from None
        raise


def _carry_out(connection: Connection, command: Command, claim: Claim | None, origin: Origin) -> CommandResult:
    if claim is not None and isinstance(command, SteeringCommand):
        result, status = steer(connection, claim, command, origin.secrets)
        keep_trace(connection, result["rollout_id"], origin.traceparent)
        return CommandResult(result, statuses=(status,))
    if isinstance(command, SetTraffic) and origin.sees:
        refuse_foreign(connection, command, origin.sees)
    result = _EFFECTS[type(command)](connection, command)
    if sentence := deed(type(command), result):
        verb, message = command.task.rpartition(".")[2], f"{sentence}: {command.reason}" if command.reason else sentence
        record_deed(connection, verb, target_of(result), command.actor, message)
    row = connection.execute(_STATUS, (result.get("deployment"),)).fetchone()
    connection.execute(KEEP_ANSWER, answer_values(command, result))
    return CommandResult(result, statuses=(lifecycle_status(*row),) if row else ())


def _apply(connection: Connection, command: Apply, origin: Origin) -> CommandResult:
    """All parts of all documents, each with what those before it have left."""
    for name in sorted(document.deployment for document in command.documents):
        _claim_after_wishes(connection, name)  # in one order, so that two that lock the same wait for each other
    done_of, statuses = [], list[DeploymentLifecycleStatus]()
    for document in command.documents:
        stored = stored_of(connection, document)
        pieces = parts(document, stored, command)
        before = sections(connection, document.deployment, settings_alone(stored, pieces))
        results = _all_parts(connection, pieces, origin)
        if before:
            keep_settings_release(connection, document.deployment, before)
        done_of.append(
            {
                **told_of(document, pieces, [each.result for each in results]),
                "notes": notes(document, stored, command),
            }
        )
        statuses += [status for each in results for status in each.statuses]
    result: Result = {"documents": done_of}
    connection.execute(KEEP_ANSWER, answer_values(command, result))
    return CommandResult(result, statuses=tuple(statuses))


def _all_parts(connection: Connection, pieces: Sequence[Part], origin: Origin) -> list[CommandResult]:
    """Carry out the parts in their order. Raises NotAllowedError, before the first, for one that the role may not."""
    refuse_beyond(origin.role, pieces)
    commands = [part.command for part in pieces]
    return [_carry_out(connection, each, _claim(connection, each, claim_named), origin) for each in commands]


def _put_back(connection: Connection, command: Undo, origin: Origin) -> CommandResult | None:
    """Undo a file that changed settings alone; None where a rollout, or nothing, came last."""
    again = settings_to_put_back(connection, command)
    if again is None:
        return None
    deployment, (document,) = lock_named(connection, command.deployment, command.expected_version), again.documents
    pieces = parts(document, stored_of(connection, document), again)
    results = _all_parts(connection, pieces, origin)
    mark_settings_undone(connection, deployment.id)
    result: Result = {
        "deployment": command.deployment,
        "rollout_id": None,
        "version": results[-1].result["version"],
        "already": False,
        "settings": [part.sentence for part in pieces],
    }
    connection.execute(KEEP_ANSWER, answer_values(command, result))
    return CommandResult(result, statuses=results[-1].statuses)


_EFFECTS: dict[type[Command], Callable[[Connection, Any], Result]] = {
    CreateDeployment: create_deployment,
    AddRevision: add_revision,
    SetPolicy: set_policy,
    SetTraffic: set_traffic,
    SetMaintenance: set_maintenance,
    SetAutoscalingRules: autoscaling.set_rules,
    PushMetric: autoscaling.push_metric,
    **report_commands.EFFECTS,
    **fleet_rules.EFFECTS,
    **webhooks.EFFECTS,
}
