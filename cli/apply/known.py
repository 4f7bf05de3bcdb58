"""What the database has of a deployment that a file describes."""

from cli.apply.file import DeploymentFile
from cli.apply.plan import Known
from cli.servers import Reader
from db.views.deployments import DeploymentView, existing_deployments
from db.views.fleet.entrances import owners_of, reached_at
from db.views.timeline import RevisionView, revision_like
from domain.replicas.restarts import is_restart


def known_of(reader: Reader, file: DeploymentFile) -> Known:
    """Read what `cli.apply.plan` compares the file with."""
    wanted = file.wanted_traffic
    entrances = wanted.entrances_of(file.deployment) if wanted else ()
    owners = reader.read(owners_of, entrances, file.deployment) if entrances else {}
    deployment = next(iter(reader.read(existing_deployments, [file.deployment])), None)
    if deployment is None:
        return Known(owners=owners)
    revision = None
    if file.revision is not None and file.revision_name is not None:
        revision = reader.read(revision_like, deployment.id, file.revision_name, file.revision.spec)
    reached = reader.read(reached_at, deployment.id)
    is_restarted = _is_restarted(reader, deployment, revision, file)
    return Known(deployment, revision, reached, is_restarted, owners)


def _is_restarted(
    reader: Reader, deployment: DeploymentView, revision: RevisionView | None, file: DeploymentFile
) -> bool:
    """Whether what runs, or is rolled out, was made from the revision by 'rollway restart'."""
    runs = deployment.deploying_revision or deployment.current_revision
    if file.revision is None or revision is None or runs is None or not is_restart(runs, revision.name):
        return False
    restarted = reader.read(revision_like, deployment.id, runs, file.revision.spec)
    return restarted is not None and restarted.spec == revision.spec
