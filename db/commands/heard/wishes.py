"""Keeps what was asked of a deployment while somebody held its row: beside it for whoever comes next."""

from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from db.commands.locked import note
from db.locking.locked import SKIPPING_HELD, holder_of, lock_unheld
from db.locking.statuses import IS_COUNTED_ON
from domain.commands.apply.document import Apply, Document
from domain.commands.base import Command, DeploymentCommand
from domain.commands.registry import parse_command
from domain.words.errors import DeploymentNotFoundError

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


class Wish(NamedTuple):
    """One that stands; they are carried out in the order of their numbers.

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
    """The deployments that the command is about."""
    about = command.documents if isinstance(command, Apply) else (command,)
    return [each.deployment for each in about if isinstance(each, (Document, DeploymentCommand))]


def note_wish(connection: Connection, command: Command, name: str) -> dict[str, Any]:
    """Keep the command as a wish beside the row of that name, which is held; returns what is answered."""
    wish = (command.request_id, command.task, Jsonb(command.model_dump(mode="json", exclude={"request_id"})))
    row = connection.execute(_NOTE, (name, *wish)).fetchone()
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


def wishes_of(connection: Connection, name: str) -> list[Wish]:
    """List the wishes that stand beside this deployment, which the caller has locked."""
    asked = connection.cursor(row_factory=class_row(Wish))
    return asked.execute(f"{_WISHES} WHERE d.name = %s ORDER BY w.number", (name,)).fetchall()


def next_wish(connection: Connection, after: int) -> Wish | None:
    """The first of the later ones whose deployment nobody holds."""
    asked = connection.cursor(row_factory=class_row(Wish))
    query = f"{_WISHES} WHERE w.number > %s ORDER BY w.number LIMIT 1 {SKIPPING_HELD}"
    return asked.execute(query, (after,)).fetchone()


def is_good(connection: Connection, wish: Wish) -> bool:
    """Whether what it was made for is as it was, and stays so until the transaction ends. Raises CannotWaitError."""
    if wish.rollout_id is None:
        return True
    if not lock_unheld(connection, wish.deployment_id):
        raise CannotWaitError
    return connection.execute(_IS_LAST, (wish.rollout_id,)).fetchone() is not None


def drop_wish(connection: Connection, wish: Wish) -> bool:
    """Whether it stood, and nobody else has carried it out."""
    return connection.execute("DELETE FROM wishes WHERE number = %s", (wish.number,)).rowcount == 1


def give_up(connection: Connection, wish: Wish, why: str) -> None:
    """Drop one that cannot be carried out, and say so in the history, since nobody waits for the answer any more."""
    drop_wish(connection, wish)
    asked = Command.model_construct(
        request_id=wish.request_id, actor=wish.payload["actor"], reason=wish.payload["reason"]
    )
    note(connection, wish.deployment_id, asked, wish.task.rpartition(".")[2], f"refused: {why}")
