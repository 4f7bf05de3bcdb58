"""Where deployments are reached: the command that says so, and what a new deployment gets."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.commands.locked import lock_named, note, touch
from db.views.entrances import owners_of
from domain.commands import SetTraffic
from domain.errors import EntranceTakenError, WrongStateError
from domain.model import Lifecycle
from domain.traffic.entrances import default_entrances, entrances_in_words
from domain.traffic.published import Entrance

# in one order, so that two deployments that want the same ones do not wait for each other
_TAKE = """
    INSERT INTO entrances (kind, value, deployment_id, strip_prefix)
    SELECT wanted.kind, wanted.value, %s, wanted.strip_prefix
      FROM unnest(%s::text[], %s::text[], %s::boolean[]) AS wanted (kind, value, strip_prefix)
     ORDER BY wanted.kind, wanted.value
        ON CONFLICT (kind, value) DO UPDATE
       SET deployment_id = excluded.deployment_id, strip_prefix = excluded.strip_prefix
     WHERE entrances.deployment_id = excluded.deployment_id
        OR EXISTS (SELECT FROM deployments d WHERE d.id = entrances.deployment_id AND d.lifecycle = 'destroyed')
"""

_GIVE_UP = """
    DELETE FROM entrances
     WHERE deployment_id = %s AND (kind, value) NOT IN (SELECT * FROM unnest(%s::text[], %s::text[]))
"""


def set_traffic(connection: Connection, command: SetTraffic) -> dict[str, Any]:
    """Replace the entrances. Raises EntranceTakenError, WrongStateError, DeploymentNotFoundError, StaleVersionError."""
    deployment = lock_named(connection, command.deployment, command.expected_version)
    if deployment.status.lifecycle is Lifecycle.DESTROYING:
        raise WrongStateError(
            f"{command.deployment} is {deployment.status}; where it is reached can be changed until it is destroyed",
            deployment=command.deployment,
            state=deployment.status,
        )
    wanted = command.entrances_of(command.deployment)
    kinds, values = [one.kind.value for one in wanted], [one.value for one in wanted]
    cursor = connection.cursor()
    cursor.execute(_GIVE_UP, (deployment.id, kinds, values))
    _take(connection, deployment.id, wanted)
    taken = owners_of(connection, wanted, command.deployment)
    for entrance, owner in taken.items():
        if not command.is_default:
            raise EntranceTakenError.by(owner, command.deployment, entrance.kind, entrance.value)
    got = tuple(one for one in wanted if one not in taken)
    cursor.execute(
        "UPDATE deployments SET request_timeout_seconds = %s WHERE id = %s",
        (command.request_timeout_seconds, deployment.id),
    )
    said = f"reached as {entrances_in_words(got, command.request_timeout_seconds)}"
    note(connection, deployment.id, command, "set_traffic", said)
    return {
        "deployment": command.deployment,
        "entrances": [{"kind": one.kind.value, "value": one.value, "strip_prefix": one.strip_prefix} for one in got],
        "request_timeout_seconds": command.request_timeout_seconds,
        "version": touch(connection, deployment),
    }


def take_default_entrances(connection: Connection, deployment_id: UUID, name: str) -> None:
    """What a new deployment is reached by; what another one has already, stays with that one."""
    _take(connection, deployment_id, default_entrances(name))


def _take(connection: Connection, deployment_id: UUID, wanted: Sequence[Entrance]) -> None:
    """Those that are free, its own, or of a deployment that is destroyed."""
    kinds, values = [one.kind.value for one in wanted], [one.value for one in wanted]
    strips = [one.strip_prefix for one in wanted]
    connection.execute(_TAKE, (deployment_id, kinds, values, strips))
