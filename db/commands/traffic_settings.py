"""Sets where deployments are reached, by command and for new deployments, and their maintenance."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from db.certificates import want
from db.commands.guarded_write import lock_named, note, touch
from db.commands.replica_protocols import keep_wire, speak_so, spoken_alike
from db.connection.arrays import columns
from db.connection.transactions import database_now
from db.cycle.applier import give_seats
from db.views.fleet_views import owners_of, reached_at
from domain.commands.deployment_commands import SetMaintenance, SetTraffic
from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import rollout_of
from domain.model.deployment import Deployment, Rollout
from domain.model.states import ROLLING_BACK, Lifecycle
from domain.text.errors import WrongStateError
from domain.traffic.caller_match import STICKY
from domain.traffic.entrances import EntranceTakenError, default_entrances, enclosing, entrances_in_words, named_after
from domain.traffic.maintenance import STORED, Maintenance, known_maintenance
from domain.traffic.release import LastRelease, Reached, known_release, release_again, stored_release
from domain.traffic.snapshot import Entrance, EntranceKind, stored_together
from domain.traffic.tls import TLS_SETTINGS, UPSTREAM_TLS, CertificateKind, wanted_certificates
from domain.traffic.wire import Wire

_ENTRANCES = columns("kind text, value text, strip_prefix bool")

# in one order, so that two deployments that want the same ones do not wait for each other
_INSERT = f"""
    INSERT INTO entrances AS n (kind, value, deployment_id, strip_prefix, reserved)
    SELECT u.kind, u.value, %(deployment_id)s, u.strip_prefix, %(reserved)s
      FROM {_ENTRANCES}
     ORDER BY u.kind, u.value
        ON CONFLICT (kind, value) DO UPDATE
       SET deployment_id = excluded.deployment_id, strip_prefix = excluded.strip_prefix, reserved = excluded.reserved
"""
_IS_FREE = "EXISTS (SELECT FROM deployments d WHERE d.id = n.deployment_id AND d.lifecycle = 'destroyed')"

_TAKE = f"{_INSERT} WHERE n.deployment_id = excluded.deployment_id OR {_IS_FREE}"

# what the deployment has already serves on as it does
_RESERVE = f"{_INSERT} WHERE n.deployment_id = excluded.deployment_id AND n.reserved OR {_IS_FREE}"

_LIVING = "SELECT name FROM deployments WHERE name = ANY(%s) AND name <> %s AND lifecycle <> 'destroyed'"

_GIVE_UP = f"""
    DELETE FROM entrances
     WHERE deployment_id = %(deployment_id)s AND reserved = %(reserved)s
       AND (kind, value) NOT IN (SELECT u.kind, u.value FROM {_ENTRANCES})
"""

_BRINGS = """
    SELECT v.name FROM rollouts o JOIN revisions v ON v.id = o.to_revision_id WHERE o.id = %s AND o.traffic IS NOT NULL
"""

_LAST_RELEASE = """
    SELECT from_revision_id, to_revision_id, outcome = 'completed' AS is_completed, traffic_before AS before,
           traffic AS after
      FROM (SELECT * FROM rollouts WHERE deployment_id = %s AND outcome IS NOT NULL
             ORDER BY started_at DESC LIMIT 1) last
     WHERE traffic IS NOT NULL
"""

_BRING = "UPDATE rollouts SET traffic = %s, traffic_before = %s WHERE id = %s"


def set_traffic(connection: Connection, command: SetTraffic) -> dict[str, Any]:
    """Replace the settings, or those of the rollout under way.

    Raises EntranceTakenError, WrongStateError, DeploymentNotFoundError and StaleVersionError.
    """
    deployment = lock_named(connection, command.deployment, command.expected_version)
    if deployment.status.lifecycle is Lifecycle.DESTROYING:
        raise WrongStateError.of_leaving(command.deployment, deployment.status, "where it is reached can be changed")
    rollout = _rollout_to_bring(connection, deployment, command)
    entrances, is_reserved = command.entrances_of(command.deployment), rollout is not None
    connection.execute(_GIVE_UP, _arrays(deployment.id, entrances, reserved=is_reserved))
    connection.execute(_RESERVE if is_reserved else _TAKE, _arrays(deployment.id, entrances, reserved=is_reserved))
    owners = owners_of(connection, entrances, command.deployment)
    for entrance, owner in owners.items():
        if not command.is_default:
            raise EntranceTakenError.by(owner, command.deployment, entrance.kind, entrance.value)
    got = tuple(entrance for entrance in entrances if entrance not in owners)
    message = f"reached as {entrances_in_words(got, command.rules)}"
    if rollout is not None:
        _bring(connection, deployment, rollout, (got, command.rules))
        message = f"{_exchange(rollout)} {message}"
    else:
        _set_at_once(connection, deployment.id, (got, command.rules))
    note(connection, deployment.id, command, "set_traffic", message)
    return {**_answer(command, got), "version": touch(connection, deployment)}


def _answer(command: SetTraffic, got: Sequence[Entrance]) -> dict[str, Any]:
    return {
        "deployment": command.deployment,
        "entrances": [
            {"kind": entrance.kind.value, "value": entrance.value, "strip_prefix": entrance.strip_prefix}
            for entrance in got
        ],
        "request_timeout_seconds": command.request_timeout_seconds,
        "hedge_after_seconds": command.hedge_after_seconds,
        "preview": command.preview,
        "idle_timeout_seconds": command.idle_timeout_seconds,
        "protocol": command.protocol.value,
        "tls": None if command.tls is None else TLS_SETTINGS.dump_python(command.tls, mode="json"),
        "hold_seconds": command.hold_seconds,
        "hold_callers": command.hold_callers,
        "slow_start_seconds": command.slow_start_seconds,
        "max_body_bytes": command.max_body_bytes,
        "max_requests_per_second": command.max_requests_per_second,
        "upstream_tls": command.upstream_tls and UPSTREAM_TLS.dump_python(command.upstream_tls, mode="json"),
        "pages": command.pages,
        "sticky": command.sticky and STICKY.dump_python(command.sticky, mode="json"),
    }


def _rollout_to_bring(connection: Connection, deployment: Deployment, command: SetTraffic) -> Rollout | None:
    """The rollout that brings the settings; None where they hold at once. Raises WrongStateError and NoRolloutError."""
    goes_back = deployment.status == ROLLING_BACK
    if command.with_rollout:
        rollout = rollout_of(deployment, "bring settings with")
        if goes_back:
            message = f"{deployment.name} is rolling back: the settings of the new revision leave with it"
            raise WrongStateError(message, deployment=deployment.name)
        return rollout
    if deployment.rollout is None or goes_back:
        return None
    if row := connection.execute(_BRINGS, (deployment.rollout.id,)).fetchone():
        message = (
            f"the rollout of {deployment.name} to {row[0]} brings settings of its own: change them in its file and "
            "apply that, wait until it has ended, or abort it"
        )
        raise WrongStateError(message, deployment=deployment.name)
    return None


def _bring(connection: Connection, deployment: Deployment, rollout: Rollout, release: Reached) -> None:
    """Keep the settings with the rollout, and those of before; the certificates of both are wanted meanwhile."""
    now = reached_at(connection, deployment.id).reached
    certificates, present = _certificates(release), _certificates(now)
    settings = stored_release(release, certificates, _exchange(rollout)), stored_release(now, present)
    connection.execute(_BRING, (*map(Jsonb, settings), rollout.id))
    want(connection, deployment.id, certificates | present)
    keep_wire(connection, deployment.id, [rollout.to_revision_id], release[1].wire, now[1].wire)


def _certificates(reach: Reached) -> frozenset[tuple[CertificateKind, str]]:
    entrances, rules = reach
    hosts = tuple(entrance.value for entrance in entrances if entrance.kind is EntranceKind.HOST)
    return wanted_certificates(rules.tls, hosts, rules.upstream_tls)


def _set_at_once(connection: Connection, deployment_id: UUID, reach: Reached) -> None:
    """Set the rules. They apply to the replicas that run, since no rollout brings others."""
    rules, before = reach[1], reached_at(connection, deployment_id).rules
    if spoken := spoken_alike(connection, deployment_id, before.wire):
        keep_wire(connection, deployment_id, spoken, rules.wire, before.wire)
    connection.execute(
        """
        UPDATE deployments
           SET request_timeout_seconds = %s, hedge_after_seconds = %s, preview = %s, idle_timeout_seconds = %s,
               protocol = %s, rules = %s
         WHERE id = %s
        """,
        (
            rules.timeout_seconds,
            rules.hedge_after_seconds,
            rules.preview,
            rules.idle_timeout_seconds,
            rules.protocol.value,
            Jsonb(stored_together(rules)),
            deployment_id,
        ),
    )
    give_seats(connection, [deployment_id])
    want(connection, deployment_id, _certificates(reach))


def refuse_foreign(connection: Connection, command: SetTraffic, sees: Sequence[str]) -> None:
    """Raises EntranceTakenError for an entrance within or named after another deployment's that the caller may not see.

    A deployment may have those that it is named after, wherever they lie.
    """
    own = {(entrance.kind, entrance.value) for entrance in default_entrances(command.deployment)}
    for entrance in command.entrances_of(command.deployment):
        if (entrance.kind, entrance.value) not in own:
            owner = _foreign_owner(connection, command.deployment, entrance, sees)
            if owner is not None:
                raise EntranceTakenError.by(owner, command.deployment, entrance.kind, entrance.value)


def _foreign_owner(connection: Connection, deployment: str, entrance: Entrance, sees: Sequence[str]) -> str | None:
    reaches = enclosing(entrance)
    names = list(named_after((entrance, *reaches)))
    owners = owners_of(connection, reaches, deployment).values()
    living = [name for (name,) in connection.execute(_LIVING, (names, deployment))]
    return next((owner for owner in (*owners, *living) if owner not in sees), None)


def take_default_entrances(connection: Connection, deployment_id: UUID, name: str) -> None:
    """Give a new deployment its entrances; what another one has already, stays with that one."""
    connection.execute(_TAKE, _arrays(deployment_id, default_entrances(name)))


def bring_again(
    connection: Connection, deployment: Deployment, rollout: Rollout, wire: Wire | None, *, is_back: bool
) -> None:
    """Give a rollout that has begun what its revision ran with: how its replicas are spoken to.

    `wire`: its own, if it has one. `is_back`: and all settings of the last rollout, where it takes that back or tries
    it again.
    """
    if wire is None and not is_back:
        return
    now = reached_at(connection, deployment.id).reached
    entrances, rules = (_last_release(connection, deployment, rollout, now) if is_back else None) or now
    rules = rules.with_wire(wire or rules.wire)
    if (entrances, rules) == now:
        return
    owners = owners_of(connection, entrances, deployment.name)
    entrances = tuple(entrance for entrance in entrances if entrance not in owners)
    connection.execute(_RESERVE, _arrays(deployment.id, entrances, reserved=True))
    _bring(connection, deployment, rollout, (entrances, rules))


def _last_release(connection: Connection, deployment: Deployment, rollout: Rollout, now: Reached) -> Reached | None:
    last = connection.cursor(row_factory=class_row(LastRelease)).execute(_LAST_RELEASE, (deployment.id,)).fetchone()
    return None if last is None else known_release(release_again(last, rollout.to_revision_id, now))


def follow(connection: Connection, deployment_id: UUID, revision_id: UUID, wire: Wire | None) -> None:
    """Speak to a deployment as to the revision that runs from now on, where no rollout leads to it."""
    if wire is None:
        return
    before = reached_at(connection, deployment_id).rules.wire
    if wire != before:
        keep_wire(connection, deployment_id, [revision_id], wire, before)
        speak_so(connection, deployment_id, wire)


def _exchange(rollout: Rollout) -> str:
    return EVALUATOR.strategy_of(rollout.policy).exchange


def _arrays(deployment_id: UUID, entrances: Sequence[Entrance], *, reserved: bool = False) -> dict[str, object]:
    rows = [(entrance.kind.value, entrance.value, entrance.strip_prefix) for entrance in entrances]
    return _ENTRANCES.arrays(rows, deployment_id=deployment_id, reserved=reserved)


def set_maintenance(connection: Connection, command: SetMaintenance) -> dict[str, Any]:
    """Begin it, change it, or end it. Raises WrongStateError, DeploymentNotFoundError and StaleVersionError.

    on, and it is on as it is asked for -> nothing to do
    on, and it is on                    -> it continues since it began, as it is asked for now
    off, and there is none              -> nothing to do
    """
    deployment = lock_named(connection, command.deployment, command.expected_version)
    if deployment.status.lifecycle is Lifecycle.DESTROYING:
        raise WrongStateError.of_leaving(command.deployment, deployment.status, "its maintenance can be set")
    ((row,),) = connection.execute("SELECT maintenance FROM deployments WHERE id = %s", (deployment.id,))
    before = known_maintenance(row)
    maintenance = _maintenance_of(connection, command, before)
    already = maintenance is None if before is None else maintenance == before
    version = deployment.version
    if not already:
        value = None if maintenance is None else Jsonb(STORED.dump_python(maintenance, mode="json"))
        connection.execute("UPDATE deployments SET maintenance = %s WHERE id = %s", (value, deployment.id))
        note(connection, deployment.id, command, "set_maintenance", f"maintenance {command.state}")
        version = touch(connection, deployment)
    return {
        "deployment": command.deployment,
        "version": version,
        "state": command.state,
        "since": maintenance.since.isoformat() if maintenance else None,
        "already": already,
    }


def _maintenance_of(connection: Connection, command: SetMaintenance, before: Maintenance | None) -> Maintenance | None:
    if command.state == "off":
        return None
    maintenance = Maintenance(
        since=before.since if before else database_now(connection),
        by=command.actor,
        reason=command.reason,
        page=command.page or "",
        allow=command.allow or "",
        retry_after_seconds=command.retry_after_seconds,
    )
    # who says the same once more has not begun it
    return before if before and replace(maintenance, by=before.by) == before else maintenance
