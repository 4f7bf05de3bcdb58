"""Sets where deployments are reached: by the command that says so, and for a new deployment."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from db.certificates.wanted import want
from db.commands.locked import lock_named, note, touch
from db.cycle.seats import give_seats
from db.locking.rows import columns
from db.views.fleet.entrances import owners_of
from domain.commands.deployment import SetTraffic
from domain.model.states import Lifecycle
from domain.traffic.chosen import STICKY
from domain.traffic.entrances import EntranceTakenError, default_entrances
from domain.traffic.nested import around, named_after
from domain.traffic.published import Entrance, stored_together
from domain.traffic.tls import TLS_SETTINGS, UPSTREAM_TLS, wanted_certificates
from domain.traffic.worded import entrances_in_words
from domain.words.errors import WrongStateError

_ENTRANCES = columns("kind text, value text, strip_prefix bool")

# in one order, so that two deployments that want the same ones do not wait for each other
_TAKE = f"""
    INSERT INTO entrances (kind, value, deployment_id, strip_prefix)
    SELECT u.kind, u.value, %(deployment_id)s, u.strip_prefix
      FROM {_ENTRANCES}
     ORDER BY u.kind, u.value
        ON CONFLICT (kind, value) DO UPDATE
       SET deployment_id = excluded.deployment_id, strip_prefix = excluded.strip_prefix
     WHERE entrances.deployment_id = excluded.deployment_id
        OR EXISTS (SELECT FROM deployments d WHERE d.id = entrances.deployment_id AND d.lifecycle = 'destroyed')
"""

_LIVING = "SELECT name FROM deployments WHERE name = ANY(%s) AND name <> %s AND lifecycle <> 'destroyed'"

_GIVE_UP = f"""
    DELETE FROM entrances
     WHERE deployment_id = %(deployment_id)s AND (kind, value) NOT IN (SELECT u.kind, u.value FROM {_ENTRANCES})
"""


def set_traffic(connection: Connection, command: SetTraffic) -> dict[str, Any]:
    """Replace the entrances. Raises EntranceTakenError, WrongStateError, DeploymentNotFoundError, StaleVersionError."""
    deployment = lock_named(connection, command.deployment, command.expected_version)
    if deployment.status.lifecycle is Lifecycle.DESTROYING:
        raise WrongStateError.of_leaving(command.deployment, deployment.status, "where it is reached can be changed")
    wanted = command.entrances_of(command.deployment)
    connection.execute(_GIVE_UP, _arrays(deployment.id, wanted))
    _take(connection, deployment.id, wanted)
    taken = owners_of(connection, wanted, command.deployment)
    for entrance, owner in taken.items():
        if not command.is_default:
            raise EntranceTakenError.by(owner, command.deployment, entrance.kind, entrance.value)
    got = tuple(entrance for entrance in wanted if entrance not in taken)
    _set_rules(connection, deployment.id, command)
    give_seats(connection, [deployment.id])
    want(connection, deployment.id, wanted_certificates(command.tls, command.hosts or (), command.upstream_tls))
    message = f"reached as {entrances_in_words(got, command.rules)}"
    note(connection, deployment.id, command, "set_traffic", message)
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
        "max_body_bytes": command.max_body_bytes,
        "max_requests_per_second": command.max_requests_per_second,
        "upstream_tls": command.upstream_tls and UPSTREAM_TLS.dump_python(command.upstream_tls, mode="json"),
        "pages": command.pages,
        "sticky": command.sticky and STICKY.dump_python(command.sticky, mode="json"),
        "version": touch(connection, deployment),
    }


def _set_rules(connection: Connection, deployment_id: UUID, command: SetTraffic) -> None:
    connection.execute(
        """
        UPDATE deployments
           SET request_timeout_seconds = %s, hedge_after_seconds = %s, preview = %s, idle_timeout_seconds = %s,
               protocol = %s, rules = %s
         WHERE id = %s
        """,
        (
            command.request_timeout_seconds,
            command.hedge_after_seconds,
            command.preview,
            command.idle_timeout_seconds,
            command.protocol,
            Jsonb(stored_together(command.rules)),
            deployment_id,
        ),
    )


def refuse_foreign(connection: Connection, command: SetTraffic, sees: Sequence[str]) -> None:
    """Raises EntranceTakenError for one within another's, or named after another, for who does not see that one.

    A deployment may have those that it is named after, wherever they lie.
    """
    own = {(entrance.kind, entrance.value) for entrance in default_entrances(command.deployment)}
    for entrance in command.entrances_of(command.deployment):
        if (entrance.kind, entrance.value) not in own:
            owner = _foreign_owner(connection, command.deployment, entrance, sees)
            if owner is not None:
                raise EntranceTakenError.by(owner, command.deployment, entrance.kind, entrance.value)


def _foreign_owner(connection: Connection, deployment: str, entrance: Entrance, sees: Sequence[str]) -> str | None:
    reaches = around(entrance)
    named = list(named_after((entrance, *reaches)))
    owners = owners_of(connection, reaches, deployment).values()
    living = [name for (name,) in connection.execute(_LIVING, (named, deployment))]
    return next((owner for owner in (*owners, *living) if owner not in sees), None)


def take_default_entrances(connection: Connection, deployment_id: UUID, name: str) -> None:
    """Give a new deployment its entrances; what another one has already, stays with that one."""
    _take(connection, deployment_id, default_entrances(name))


def _take(connection: Connection, deployment_id: UUID, wanted: Sequence[Entrance]) -> None:
    """Take the entrances that are free, its own, or of a deployment that is destroyed."""
    connection.execute(_TAKE, _arrays(deployment_id, wanted))


def _arrays(deployment_id: UUID, entrances: Sequence[Entrance]) -> dict[str, object]:
    rows = [(entrance.kind.value, entrance.value, entrance.strip_prefix) for entrance in entrances]
    return _ENTRANCES.arrays(rows, deployment_id=deployment_id)
