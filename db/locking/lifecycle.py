"""Where deployments are in their lives, as their two columns say, and whose handlers have something to look at."""

from collections.abc import Iterable
from uuid import UUID

from psycopg import Connection

from domain.model.deployment import DeploymentLifecycleStatus, DeploymentSubStep, Lifecycle
from domain.words.errors import UnreadableError

_STATUSES = {
    (lifecycle.value, sub_step.value if sub_step else None): DeploymentLifecycleStatus(lifecycle, sub_step)
    for lifecycle in Lifecycle
    for sub_step in (None, *DeploymentSubStep)
}


def lifecycle_status(lifecycle: str, sub_step: str | None) -> DeploymentLifecycleStatus:
    """A status as its two columns store it. Raises UnreadableError for one that this release does not know."""
    try:
        return _STATUSES[lifecycle, sub_step]
    except KeyError:
        word = f"{lifecycle}/{sub_step}" if sub_step else lifecycle
        raise UnreadableError.of("state of a deployment", word) from None


def known_status(lifecycle: str, sub_step: str | None) -> DeploymentLifecycleStatus | None:
    """The status; None for one that this release does not know, so that no handler of it looks at the deployment."""
    return _STATUSES.get((lifecycle, sub_step))


def statuses_of(connection: Connection, deployment_ids: Iterable[UUID]) -> frozenset[DeploymentLifecycleStatus]:
    """The statuses these deployments are in: whose handlers a change of theirs wakes."""
    return _statuses(connection, "id = ANY(%s)", (list(deployment_ids),))


def due_statuses(connection: Connection) -> frozenset[DeploymentLifecycleStatus]:
    """The statuses of marked deployments whose time has come: one look at a partial index."""
    return _statuses(connection, "due_at <= statement_timestamp()")


def _statuses(
    connection: Connection, condition: str, parameters: tuple[object, ...] = ()
) -> frozenset[DeploymentLifecycleStatus]:
    rows = connection.execute(f"SELECT DISTINCT lifecycle, sub_step FROM deployments WHERE {condition}", parameters)
    return frozenset(status for row in rows if (status := known_status(*row)))
