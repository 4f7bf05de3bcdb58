"""The beginning of a user's write: whether it was done before, and its deployment, locked, marked and versioned."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from psycopg import Connection
from psycopg.types.json import Jsonb
from pydantic import ValidationError

from db.cycle.claim import Claim, Load, claim_named, load
from db.locking.row_locks import ALWAYS, count_change
from domain.commands.base import Command, RequestIdReusedError, StaleVersionError
from domain.model.deployment import Deployment
from domain.text.errors import DeploymentNotFoundError

RECORD = """
    INSERT INTO deployment_history (id, deployment_id, rollout_id, phase, result, target, actor, message)
    SELECT %(record_id)s::uuid, id, rollout_id, %(phase)s, 'asked', concat_ws('/', lifecycle, sub_step), %(actor)s,
           %(message)s
      FROM changed WHERE %(record_id)s::uuid IS NOT NULL
"""
"""The record in the timeline of the deployment that the same statement has `changed`; with the values of `record`."""

_NOTE = f"""
    WITH changed AS (
        UPDATE deployments SET history_id = %(record_id)s, history_key = NULL WHERE id = %(deployment_id)s
        RETURNING id, rollout_id, lifecycle, sub_step)
    {RECORD}
"""

_LAST_ASKED = """
    SELECT actor, phase FROM deployment_history
     WHERE deployment_id = %s AND result = 'asked' ORDER BY updated_at DESC, id DESC LIMIT 1
"""


def lock_named(connection: Connection, name: str, expected_version: int | None = None) -> Deployment:
    """The live deployment of that name, locked. Raises DeploymentNotFoundError and StaleVersionError."""
    return load_named(connection, claim_named(connection, name), name, expected_version, load)


def load_named(
    connection: Connection, claim: Claim, name: str, expected_version: int | None, load_claimed: Load
) -> Deployment:
    if not claim.deployments:  # also when it was destroyed while we waited for the lock
        raise DeploymentNotFoundError(
            f"there is no deployment called {name}; 'rollway status' lists those that exist", deployment=name
        )
    (deployment,) = load_claimed(connection, claim.deployments)
    if expected_version not in (None, deployment.version):
        raise _stale(connection, deployment, expected_version)
    return deployment


def _stale(connection: Connection, deployment: Deployment, expected_version: int | None) -> StaleVersionError:
    """The refusal of an old version. The last actor, whom it names, may have been faster."""
    row = connection.execute(_LAST_ASKED, (deployment.id,)).fetchone()
    who = "; the last to steer it was {} ({})".format(*row) if row else ""
    return StaleVersionError(
        f"{deployment.name} is at version {deployment.version}, not {expected_version}{who}; "
        "look at it again, then repeat",
        deployment=deployment.name,
        version=deployment.version,
        expected=expected_version,
        **({"last_actor": row[0]} if row else {}),
    )


def touch(connection: Connection, deployment: Deployment) -> int:
    """Mark the deployment, so that its handler looks at it, and give it its next version, which is returned."""
    count_change(connection, [deployment.id], mark=ALWAYS)
    return deployment.version + 1


def note(connection: Connection, deployment_id: UUID, command: Command, phase: str, message: str) -> None:
    """A record in the timeline with actor and reason; a user's record is never merged."""
    connection.execute(_NOTE, {"deployment_id": deployment_id, **record(command, phase, message)})


def record(command: Command, phase: str, message: str) -> dict[str, object]:
    """The values of RECORD; without a message there is none. The deployment's row must name it as its last one."""
    sentence = f"{message}: {command.reason}" if command.reason else message
    record_id = uuid4() if message else None
    return {"record_id": record_id, "phase": phase, "actor": command.actor, "message": sentence}


KEEP_ANSWER = "UPDATE commands SET result = %(result)s WHERE request_id = %(request_id)s"
"""The values come from `answer_values`."""


def answer_values(command: Command, result: Mapping[str, Any]) -> dict[str, object]:
    """The values of KEEP_ANSWER."""
    return {"result": Jsonb(result), "request_id": command.request_id}


def answer_again(connection: Connection, command: Command, payload: dict[str, Any]) -> dict[str, Any]:
    """The answer that the request got the first time. Raises RequestIdReusedError."""
    query = "SELECT payload, result FROM commands WHERE request_id = %s AND name = %s"
    row = connection.execute(query, (command.request_id, command.task)).fetchone()
    if row is None or not _is_asked_again(connection, command, row[0], payload):
        message = (
            f"request_id {command.request_id!r} was used for another request; every request needs an id of its own"
        )
        raise RequestIdReusedError(message, request_id=command.request_id)
    answer: dict[str, Any] = row[1]
    return answer


def _is_asked_again(connection: Connection, command: Command, before: dict[str, Any], payload: dict[str, Any]) -> bool:
    """Compare a payload stored by any release with the present one; new fields count with their defaults.

    Postgres compares them: it writes 1e23 in full, which Python would read as another number.
    """
    try:
        first = type(command).model_validate({**before, "request_id": command.request_id})
    except ValidationError:
        return False
    first_fields = first.model_dump(mode="json", exclude={"request_id"})
    return connection.execute("SELECT %s = %s", (Jsonb(first_fields), Jsonb(payload))).fetchone() == (True,)
