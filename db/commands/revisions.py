"""Revisions: the command that adds one, its values its own or those of another one."""

from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from db.commands.locked import lock_named, note
from domain.commands.deployment import AddRevision
from domain.revisions.revision import RevisionSpec, revision_name
from domain.revisions.secrets import MASK, names_masked
from domain.revisions.stored import is_same, with_values_of
from domain.words.errors import InvalidInputError, RevisionExistsError, RevisionNotFoundError

_NAMED = "SELECT id, spec FROM revisions WHERE deployment_id = %s AND name = %s"


def add_revision(connection: Connection, command: AddRevision) -> dict[str, Any]:
    """The same one again is no error. Raises DeploymentNotFoundError, StaleVersionError and RevisionExistsError.

    And where it takes values of another revision RevisionNotFoundError, and InvalidInputError for one that it lacks.
    """
    deployment = lock_named(connection, command.deployment, command.expected_version)
    spec = _with_values(connection, deployment.id, command)
    name = command.name or revision_name(command.deployment, spec)
    cursor = connection.cursor(row_factory=dict_row)
    cursor.execute(
        "INSERT INTO revisions (deployment_id, name, spec) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
        (deployment.id, name, Jsonb(spec.model_dump(mode="json"))),
    )
    added = bool(cursor.rowcount)
    row = cursor.execute(_NAMED, (deployment.id, name)).fetchone()
    if row is None or not is_same(row["spec"], spec):
        raise RevisionExistsError.of(command.deployment, name)
    if added:
        note(connection, deployment.id, command, "add_revision", f"revision {name} added")
    return {"deployment": command.deployment, "revision": name, "revision_id": str(row["id"]), "added": added}


def _with_values(connection: Connection, deployment_id: UUID, command: AddRevision) -> RevisionSpec:
    """What is to run, no value of it masked."""
    if command.values_of is None:
        return command.spec
    row = connection.execute(_NAMED, (deployment_id, command.values_of)).fetchone()
    if row is None:
        message = f"{command.deployment} has no revision {command.values_of}, whose values this one should have"
        raise RevisionNotFoundError(message, deployment=command.deployment, revision=command.values_of)
    spec = with_values_of(row[1], command.spec)
    if lacking := names_masked(spec.env):
        message = f"spec.env.{lacking[0]}: {MASK} stands for the value in {command.values_of}, which has none"
        raise InvalidInputError(f"{message}; write the value itself", field=f"spec.env.{lacking[0]}")
    return spec
