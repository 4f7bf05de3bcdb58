"""One deployment locked for a user's write: found by its name, noted in its history, marked and versioned."""

from uuid import UUID, uuid4

from psycopg import Connection

from db.cycle.claim import Claim, claim_named
from db.cycle.load import load
from db.locked import ALWAYS, changed
from domain.commands.base import Command
from domain.errors import DeploymentNotFoundError, StaleVersionError
from domain.model import Deployment

_NOTE = """
    INSERT INTO deployment_history (id, deployment_id, rollout_id, phase, result, target, actor, message)
    SELECT %s, id, rollout_id, %s, 'asked', concat_ws('/', lifecycle, sub_step), %s, %s
      FROM deployments WHERE id = %s
"""

_POINT_TO_NOTE = "UPDATE deployments SET history_id = %s, history_key = NULL WHERE id = %s"

_LAST_ASKED = """
    SELECT actor, phase FROM deployment_history
     WHERE deployment_id = %s AND result = 'asked' ORDER BY updated_at DESC, id DESC LIMIT 1
"""


def lock_named(connection: Connection, name: str, expected_version: int | None = None) -> Deployment:
    """The live deployment of that name, locked. Raises DeploymentNotFoundError and StaleVersionError."""
    return lock_claimed(connection, name, expected_version)[0]


def lock_claimed(connection: Connection, name: str, expected_version: int | None = None) -> tuple[Deployment, Claim]:
    """The same, and its claim."""
    claim = claim_named(connection, name)
    deployment = next(iter(load(connection, claim.deployments)), None)
    if deployment is None:  # also when it came to its end while we waited for the lock
        raise DeploymentNotFoundError(
            f"there is no deployment called {name}; 'rollway status' lists those that exist", deployment=name
        )
    if expected_version not in (None, deployment.version):
        raise _stale(connection, deployment, expected_version)
    return deployment, claim


def _stale(connection: Connection, deployment: Deployment, expected_version: int | None) -> StaleVersionError:
    """Names who steered last, who may have been faster."""
    asked = connection.execute(_LAST_ASKED, (deployment.id,)).fetchone()
    who = "; the last to steer it was {} ({})".format(*asked) if asked else ""
    return StaleVersionError(
        f"{deployment.name} is at version {deployment.version}, not {expected_version}{who}; "
        "look at it again, then repeat",
        deployment=deployment.name,
        version=deployment.version,
        expected=expected_version,
        **({"last_actor": asked[0]} if asked else {}),
    )


def touch(connection: Connection, deployment: Deployment) -> int:
    """Mark the deployment, so that its handler looks at it, and give it its next version, which is returned."""
    changed(connection, [deployment.id], mark=ALWAYS)
    return deployment.version + 1


def note(connection: Connection, deployment_id: UUID, command: Command, phase: str, message: str) -> None:
    """A record in the timeline with who and why; a user's record is never merged."""
    record_id = uuid4()
    write_note(connection, record_id, deployment_id, command, phase, message)
    connection.execute(_POINT_TO_NOTE, (record_id, deployment_id))


def write_note(  # noqa: PLR0913  (a record's values)
    connection: Connection, record_id: UUID, deployment_id: UUID, command: Command, phase: str, message: str
) -> None:
    """The record alone; the deployment's row must name it as its last one, which nothing merges into."""
    sentence = f"{message}: {command.reason}" if command.reason else message
    connection.execute(_NOTE, (record_id, phase, command.actor, sentence, deployment_id))
