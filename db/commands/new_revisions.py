"""Revisions: the command that adds one, and the one that a rolling update goes to."""

import json
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from db.commands.guarded_write import lock_named, note
from domain.commands.deployment_commands import AddRevision
from domain.commands.rollout_commands import RollingUpdate
from domain.model.deployment import Deployment
from domain.revisions.revision import (
    RevisionExistsError,
    RevisionSpec,
    changed_spec,
    is_same,
    restarted_name,
    revision_name,
    stored_spec,
    with_values_of,
)
from domain.revisions.secret_refs import MASK, names_masked
from domain.text.errors import InvalidInputError, RevisionNotFoundError, WrongStateError

_OF_ID = "SELECT name, spec FROM revisions WHERE id = %s"
_NAMED = "SELECT id, spec FROM revisions WHERE deployment_id = %s AND name = %s"

_SAME_AGAIN = """
    INSERT INTO revisions (deployment_id, name, spec, is_walled, wire)
    SELECT deployment_id, %s, spec, is_walled, wire FROM revisions WHERE id = %s
"""


def add_revision(connection: Connection, command: AddRevision) -> dict[str, Any]:
    """Add a revision, again without error. Raises DeploymentNotFoundError, StaleVersionError and RevisionExistsError.

    And where it takes values of another revision RevisionNotFoundError, and InvalidInputError for one that it lacks.
    """
    deployment = lock_named(connection, command.deployment, command.expected_version)
    spec = _with_values(connection, deployment, command.spec, command.values_of) if command.values_of else command.spec
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
        if spec.needs:
            connection.execute("UPDATE deployments SET has_needs = true WHERE id = %s", (deployment.id,))
    return {"deployment": command.deployment, "revision": name, "revision_id": str(row["id"]), "added": added}


def add_restarted(connection: Connection, deployment_id: UUID, current: UUID) -> str:
    """A revision with the content of the current one; the name that it has got."""
    names = dict[Any, str](
        connection.execute("SELECT id, name FROM revisions WHERE deployment_id = %s", (deployment_id,)).fetchall()
    )
    name = restarted_name(names[current], names.values())
    connection.execute(_SAME_AGAIN, (name, current))
    return name


def next_revision(connection: Connection, deployment: Deployment, command: RollingUpdate) -> str:
    """The name of the revision that a rolling update of the locked deployment goes to; a new one is added.

    Raises RevisionExistsError, and what `changed_revision` raises.
    """
    revision = changed_revision(connection, deployment, command)
    return revision if isinstance(revision, str) else str(add_revision(connection, revision)["revision"])


def changed_revision(connection: Connection, deployment: Deployment, command: RollingUpdate) -> str | AddRevision:
    """A revision that exists, by its name, or the one that is to be added.

    Raises InvalidInputError, WrongStateError and RevisionNotFoundError.
    """
    if not command.changes:
        return command.revision or _deploying(connection, deployment)
    row = connection.execute(_OF_ID, (deployment.current_revision_id,)).fetchone()
    if row is None:
        message = f"{deployment.name} runs nothing that could be changed: 'rollway apply' gives it a first revision"
        raise WrongStateError(message, deployment=deployment.name, state=str(deployment.status))
    name, parsed = row[0], stored_spec(json.dumps(row[1]))
    if command.spec is None:
        spec = changed_spec(name, parsed, command.image, command.command)
    else:
        spec = _with_values(connection, deployment, command.spec.spec, command.values_of or name)
    if command.revision is None and spec == parsed.spec:
        return str(name)
    shared = {"request_id": command.request_id, "actor": command.actor, "reason": command.reason}
    return AddRevision(deployment=deployment.name, name=command.revision, spec=spec, **shared)


def _deploying(connection: Connection, deployment: Deployment) -> str:
    row = connection.execute(_OF_ID, (deployment.deploying_revision_id,)).fetchone()
    if row is None:
        raise InvalidInputError("say what changes: an image, a command, or a revision that exists", field="image")
    return str(row[0])


def _with_values(connection: Connection, deployment: Deployment, spec: RevisionSpec, source: str) -> RevisionSpec:
    """The spec that will run, no value of it masked: those that are have the values of the revision `source`."""
    row = connection.execute(_NAMED, (deployment.id, source)).fetchone()
    if row is None:
        message = f"{deployment.name} has no revision {source}, whose values this one should have"
        raise RevisionNotFoundError(message, deployment=deployment.name, revision=source)
    filled = with_values_of(row[1], spec)
    if lacking := names_masked(filled.env):
        message = f"spec.env.{lacking[0]}: {MASK} means the value in {source}, which has none"
        raise InvalidInputError(f"{message}; write the value itself", field=f"spec.env.{lacking[0]}")
    return filled
