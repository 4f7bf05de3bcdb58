"""Commands that steer a deployment: the domain decides by their rules, one effect writes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from psycopg import Connection, Cursor
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from db.commands.guarded_write import KEEP_ANSWER, RECORD, answer_values, load_named, record
from db.commands.new_revisions import add_restarted, next_revision
from db.commands.policies import read_policy
from db.commands.replica_protocols import own_wire, wire_of
from db.commands.traffic_settings import bring_again, follow
from db.cycle.applier import DEPLOYMENT, ROLLOUT, assigned, deployment_values, rollout_values
from db.cycle.autoscaling_rules import rules_of_one
from db.cycle.claim import Claim, load_routes
from db.devices import demands_of, read_ledger
from db.fleet_gates import frozen_now
from db.locking.statuses import ACTIVE
from db.outbox import write_events
from db.replicas.secret_requests import REFERENCES_TO_START, UnaskedSecretsError, secret_checks
from db.views.deployment_views import existing_deployments
from db.views.fleet_views import reached_at
from db.views.rollout_records import ended_rollouts, set_alone, settings_release
from db.views.route_views import why_it_only_failed
from db.views.unplaced import labels_by_host
from domain.commands.base import DeploymentCommand
from domain.commands.deployment_commands import Scale
from domain.commands.rollout_commands import Abort, Pause, Retry, Undo
from domain.commands.steering_command import StartingCommand, SteeringCommand
from domain.cycle.rollout import size_again
from domain.model.deployment import Deployment, Rollout
from domain.model.states import DeploymentLifecycleStatus, RolloutOutcome
from domain.outbox.cloud_events import told_by_command
from domain.revisions.host_labels import Labels, has_labels
from domain.revisions.secret_refs import SecretCheck
from domain.steering.activation import ActivationRequest, restarted_revision
from domain.steering.command_effect import Context, Effect
from domain.steering.device_check import DeviceCase
from domain.steering.rollout_history import (
    AlreadyUndoneError,
    NoPreviousRevisionError,
    size_back,
    way_back,
    with_what_stays,
)
from domain.text.errors import RevisionNotFoundError
from domain.traffic.entrances import entrances_in_words
from domain.traffic.wire import Wire

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
    effect: Effect,
    command: DeploymentCommand,
    asking: Context,
    result: Mapping[str, object],
) -> None:
    """Write what the command made of the locked deployment `before`, mark it, and keep `result` as the answer."""
    after, now = effect.deployment, asking.at
    rollout, guard = after.rollout, effect.guard
    if before.rollout is not None and effect.ended is not None:
        connection.execute(_END_ROLLOUT, (effect.ended.value, now, before.rollout.id))
    verb = command.task.rpartition(".")[2].removesuffix("_revision")
    parameters = {
        **record(command, verb, effect.sentence),
        **answer_values(command, result),
        "waits_for": effect.waits_for,
    }
    values = DEPLOYMENT.arrays([deployment_values(after)], version=after.version, now=now, **parameters)
    if rollout is None or guard is None:
        connection.execute(_CHANGE_WITHOUT_ROLLOUT, values)
    else:
        values |= _OF_ROLLOUT.arrays([rollout_values(rollout)], ceiling=guard.ceiling, floor=guard.keep)
        if before.rollout is not None and before.rollout.id == rollout.id:
            more = {
                "back_reason": effect.back_reason,
                "limits": _changed_limits(before.rollout, rollout),
            }
            connection.execute(_CHANGE_WITH_ROLLOUT, {**values, **more})
        else:
            whole = {"deployment_id": after.id, "count_stopping": guard.count_stopping}
            connection.execute(_BEGIN_ROLLOUT, {**values, **whole, **_begun_values(rollout, command)})
    if before.start_failures is not None and after.start_failures is None:
        connection.execute(_FORGET_FAILURES, (after.id,))
    if effect.gives_up_replicas:
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


# the revision of that name, and the one that is being deployed
_REVISIONS = f"""
    SELECT v.id, v.name, p.strategy, p.spec::text, p.limits::text, ARRAY({REFERENCES_TO_START}) AS secrets,
           EXISTS (SELECT FROM freezes) AS may_be_frozen, v.wire, coalesce(v.spec -> 'hosts', '{{}}') AS labels,
           v.spec ->> 'prepare' IS NOT NULL AS prepares,
           v.spec -> 'needs' AS needs
      FROM revisions v LEFT JOIN policies p ON p.deployment_id = v.deployment_id
     WHERE v.deployment_id = %s AND (v.name = %s OR v.id = %s)
"""

_LAST_ROLLOUT = """
    SELECT v.name, o.outcome, o.is_undo, o.desired_with_revision, o.desired_at_start
      FROM rollouts o JOIN revisions v ON v.id = o.to_revision_id
     WHERE o.deployment_id = %s ORDER BY o.started_at DESC LIMIT 1
"""

_STARTS = f"""
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM healthy_at - created_at)::float8)
      FROM routes WHERE deployment_id = %s AND {ACTIVE}
"""


def steer(
    connection: Connection, claim: Claim, command: SteeringCommand, secrets: Collection[str] | None = None
) -> tuple[dict[str, Any], DeploymentLifecycleStatus]:
    """Carry out a command, and keep its answer. Returns it, and the new status of the deployment.

    Raises what its rule raises, and what `case_of` raises. `secrets`: as in `db.commands.execute`.
    """
    case = case_of(connection, claim, command, secrets)
    effect = case.steered()
    rollout = effect.deployment.rollout
    if isinstance(command, Scale) and (rules := rules_of_one(connection, case.deployment.id)):
        effect = effect.with_details(rules=[str(rule) for rule in rules])
    if isinstance(command, Undo) and (stays := set_alone(connection, case.deployment.id)):
        effect = effect.with_details(stays=stays)
    result = {
        "deployment": command.deployment,
        "rollout_id": str(rollout.id) if rollout else None,
        "version": effect.deployment.version,
        "already": effect.already,
        **effect.details,
    }
    if effect.already:
        connection.execute(KEEP_ANSWER, answer_values(command, result))
    else:
        write_steered(connection, case.deployment, effect, command, case.asking, result)
        _take_settings(connection, case, effect.deployment)
        if isinstance(command, Undo | Retry) and (settings := _settings_back(connection, case, effect.deployment)):
            result |= {"settings": [settings]}
            connection.execute(KEEP_ANSWER, answer_values(command, result))
        if case.has_subscribers:
            write_events(connection, told_by_command(case.deployment, effect, case.asking, command.actor))
    return result, effect.deployment.status


def _take_settings(connection: Connection, case: "StoredCase", after: Deployment) -> None:
    """Let the settings that belong to a revision come with it, by a rollout or without one."""
    rollout, runs = after.rollout, after.current_revision_id
    if rollout is not None and rollout.id == case.asking.rollout_id:
        is_back = isinstance(case.command, Undo | Retry)
        bring_again(connection, case.deployment, rollout, case.wire(rollout.to_revision_id), is_back=is_back)
    elif runs is not None and runs != case.deployment.current_revision_id:
        follow(connection, after.id, runs, case.wire(runs))


def _settings_back(connection: Connection, case: "StoredCase", after: Deployment) -> str:
    """Say which settings come back with a rollout, and when; empty where none do."""
    if after.rollout is None:
        return ""
    reach = reached_at(connection, after.id)
    if case.deployment.rollout is None or after.rollout.id != case.deployment.rollout.id or not reach.brings:
        return reach.brings
    return f"as soon as the new revision answers nobody {entrances_in_words(*reach.reached)}"


def case_of(
    connection: Connection, claim: Claim, command: SteeringCommand, secrets: Collection[str] | None = None
) -> "StoredCase":
    """The command with the deployment that was claimed. Raises DeploymentNotFoundError and StaleVersionError."""
    deployment = load_named(connection, claim, command.deployment, command.expected_version, load_routes)
    why = f"by {command.actor}" + (f": {command.reason}" if command.reason else "")
    return StoredCase(
        connection, deployment, command, Context(why, claim.now, claim.next_id), secrets, claim.has_subscribers
    )


@dataclass(frozen=True, slots=True)
class StoredCase:
    """A command to a stored deployment, which reads what the rule of the command needs."""

    connection: Connection
    deployment: Deployment
    command: Any
    asking: Context
    secrets: Collection[str] | None
    has_subscribers: bool
    wires: dict[UUID, Wire | None] = field(default_factory=dict)
    """The wires of the revisions that have been read."""

    def wire(self, revision_id: UUID) -> Wire | None:
        """How a revision is spoken to; None where it has no wire of its own."""
        if revision_id in self.wires:
            return self.wires[revision_id]
        return own_wire(self.connection, revision_id)

    def steered(self) -> Effect:
        """Ask the rule of the command, and what follows of it. Raises its refusals."""
        effect: Effect = self.command.steer(self)
        return effect.finished(self.asking.at)

    def activation(
        self, revision: str, *, supersede: bool = False, desired: int | None = None, with_secrets: bool = False
    ) -> ActivationRequest:
        """Read what is asked of the revision with that name. Raises RevisionNotFoundError.

        `with_secrets`: what hosts say of those that it refers to counts. Raises UnaskedSecretsError.
        """
        deploying = self.deployment.deploying_revision_id
        rows = self._rows().execute(_REVISIONS, (self.deployment.id, revision, deploying)).fetchall()
        self.wires.update((row["id"], wire_of(row["wire"])) for row in rows)
        target = next((row for row in rows if row["name"] == revision), None)
        if target is None:
            raise RevisionNotFoundError(
                f"{self.deployment.name} has no revision {revision}; "
                f"'rollway status {self.deployment.name}' lists them",
                deployment=self.deployment.name,
                revision=revision,
            )
        now, hosts = self.asking.at, self.hosts(target["labels"])
        return ActivationRequest(
            revision_id=target["id"],
            revision_name=revision,
            deploying_name=next((row["name"] for row in rows if row["id"] == deploying), None),
            policy=read_policy(target["strategy"], target["spec"], target["limits"]) if target["strategy"] else None,
            supersede=supersede,
            desired=desired,
            secrets=self._checks(target["secrets"], target["labels"], hosts) if with_secrets else (),
            frozen=frozen_now(self.connection, self.deployment.name, now) if target["may_be_frozen"] else None,
            through_freeze=isinstance(self.command, StartingCommand) and self.command.through_freeze,
            labels=target["labels"],
            hosts=hosts,
            prepares=target["prepares"],
            devices=self._devices(target["id"]) if target["needs"] else None,
        )

    def hosts(self, labels: Labels) -> Mapping[str, Labels]:
        """Read the labels of all hosts, where a revision requires these of its own."""
        return labels_by_host(self.connection) if labels else {}

    def _devices(self, revision_id: UUID) -> DeviceCase:
        return DeviceCase(demands_of(self.connection, [revision_id])[revision_id], read_ledger(self.connection))

    def asked_for(self) -> ActivationRequest:
        """The revision that an activation names. Raises RevisionNotFoundError and UnaskedSecretsError."""
        command = self.command
        return self.activation(
            command.revision, supersede=command.supersede, desired=command.desired_replicas, with_secrets=True
        )

    def changed(self) -> ActivationRequest:
        """The revision that a rolling update names or makes. Raises as `next_revision` and `asked_for` do."""
        name = next_revision(self.connection, self.deployment, self.command)
        return self.activation(name, supersede=self.command.supersede, with_secrets=True)

    def way_back(self) -> ActivationRequest | None:
        """The activation of the named revision, else of the one before; None where a rollout can turn back.

        Raises RevisionNotFoundError, and what `domain.steering.rollout_history.way_back` raises.
        """
        ended = ended_rollouts(self.connection, self.deployment.id)
        if self.command.revision is not None:
            return self._back_to(self.command.revision, size_back(self.deployment, self.command.revision, ended))
        if self.deployment.rollout is not None:
            return None
        (view,) = existing_deployments(self.connection, [self.deployment.name])
        release = settings_release(self.connection, view)
        try:
            back = way_back(self.deployment, ended, self.asking.at, release)
        except (AlreadyUndoneError, NoPreviousRevisionError) as refusal:
            if release is not None:
                raise
            raise with_what_stays(refusal, set_alone(self.connection, self.deployment.id)) from None
        return self._back_to(back.revision.name, back.desired)

    def same_again(self) -> ActivationRequest:
        """The activation of a new revision with the content of the current one. Raises WrongStateError."""
        name = add_restarted(self.connection, self.deployment.id, restarted_revision(self.deployment))
        return self.activation(name, with_secrets=True)

    def start_seconds(self) -> float | None:
        """Return the median of the replicas that run."""
        seconds: float | None
        ((seconds,),) = self.connection.execute(_STARTS, (self.deployment.id,))
        return seconds

    def last_rollout(self) -> tuple[ActivationRequest | None, RolloutOutcome | None]:
        """The revision of the last rollout, with the size that came with it, whether it is an undo, and the outcome."""
        row = self._rows().execute(_LAST_ROLLOUT, (self.deployment.id,)).fetchone()
        if row is None:
            return None, None
        outcome = RolloutOutcome(row["outcome"]) if row["outcome"] else None
        desired = size_again(self.deployment, row["desired_with_revision"], row["desired_at_start"])
        return replace(self.activation(row["name"], desired=desired), is_undo=row["is_undo"]), outcome

    def _back_to(self, revision: str, desired: int | None = None) -> ActivationRequest:
        request = self.activation(revision, desired=desired)
        why = "" if self.command.anyway else why_it_only_failed(self.connection, request.revision_id)
        return replace(request, only_failed=why)

    def _checks(
        self, references: Sequence[str], labels: Labels, hosts: Mapping[str, Labels]
    ) -> tuple[SecretCheck, ...]:
        """What the hosts say that have the labels."""
        if self.secrets is not None and not set(references) <= set(self.secrets):
            raise UnaskedSecretsError(self.deployment.name, references)
        checks = secret_checks(self.connection, self.deployment.name, references) if references else ()
        return tuple(each for each in checks if has_labels(labels, each.host, hosts.get(each.host, {})))

    def _rows(self) -> Cursor[DictRow]:
        return self.connection.cursor(row_factory=dict_row)


HEARD = frozenset({Abort, Pause, Undo})
"""What is heard also while somebody holds the deployment; it starts nothing that a host must have secrets for."""
