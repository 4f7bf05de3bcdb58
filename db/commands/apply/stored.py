"""What is stored of a deployment that a document describes."""

from uuid import UUID

from psycopg import Connection

from db.views.deployments import DeploymentView, existing_deployments
from db.views.fleet.entrances import owners_of, reached_at
from db.views.timeline import revision_named
from domain.commands.apply import Document
from domain.commands.parts import Stored, StoredDeployment, StoredRevision
from domain.replicas.restarts import is_restart
from domain.strategies import stored_policy


def stored_of(connection: Connection, document: Document) -> Stored:
    """What `domain.commands.parts` holds the document against."""
    wanted = document.wanted_traffic
    entrances = wanted.entrances_of(document.deployment) if wanted else ()
    owners = owners_of(connection, entrances, document.deployment) if entrances else {}
    view = next(iter(existing_deployments(connection, [document.deployment])), None)
    if view is None:
        return Stored(owners=owners)
    name = document.revision_name
    revision = stored_revision(connection, view.id, name) if name else None
    return Stored(_stored(connection, view), revision, _is_restarted(connection, view, revision), owners)


def stored_revision(connection: Connection, deployment_id: UUID, name: str) -> StoredRevision | None:
    """The revision of that name, with its values: to be compared, and shown to nobody."""
    found = revision_named(connection, deployment_id, name)
    return StoredRevision(found.id, found.name, found.spec) if found else None


def _stored(connection: Connection, view: DeploymentView) -> StoredDeployment:
    policy = stored_policy(view.policy) if view.policy else None
    reached = reached_at(connection, view.id)
    names = (view.current_revision, view.deploying_revision)
    return StoredDeployment(view.snapshot, policy, *names, (reached.entrances, reached.rules))


def _is_restarted(connection: Connection, view: DeploymentView, revision: StoredRevision | None) -> bool:
    """Whether what runs, or is rolled out, was made from the revision by 'rollway restart'."""
    runs = view.deploying_revision or view.current_revision
    if revision is None or runs is None or not is_restart(runs, revision.name):
        return False
    restarted = stored_revision(connection, view.id, runs)
    return restarted is not None and restarted.spec == revision.spec
