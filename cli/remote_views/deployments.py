"""Deployments over HTTP, and what belongs to them."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote
from uuid import UUID

from cli.remote import Remote
from cli.remote_views.asking import made, of_id, pages, path_of
from db.views.deployments import DeploymentView
from db.views.fleet.entrances import ReachedView
from db.views.progress import Progress
from db.views.routes import RouteView
from db.views.timeline import HistoryView, RevisionView
from domain.model.autoscaling import AutoscalingState
from domain.model.deployment import Lifecycle
from domain.words.errors import DeploymentNotFoundError, RevisionNotFoundError


def deployment_named(remote: Remote, name: str) -> DeploymentView:
    """The one of that name. Raises DeploymentNotFoundError."""
    return deployment(remote, deployment_document(remote, name))


def deployment_document(remote: Remote, name: str) -> dict[str, Any]:
    """The deployment as JSON has it. Raises DeploymentNotFoundError."""
    found: dict[str, Any] = remote.get(path_of(name))
    remote.names[found["id"]] = name
    return found


def existing_deployments(remote: Remote, names: Sequence[str] | None = None) -> list[DeploymentView]:
    """The deployments of these names, or all that the token is for."""
    if names is None:
        return [deployment(remote, document) for document in pages(remote, "/v1/deployments")]
    found = []
    for name in names:
        try:
            found.append(deployment_named(remote, name))
        except DeploymentNotFoundError:
            continue
    return [view for view in found if view.lifecycle is not Lifecycle.DESTROYED]


def deployment_by_id(remote: Remote, deployment_id: UUID) -> DeploymentView:
    """One whose name has been read before."""
    return deployment(remote, remote.get(of_id(remote, deployment_id)))


def deployment(remote: Remote, document: Mapping[str, Any]) -> DeploymentView:
    """The document of one as a view, its name remembered."""
    remote.names[document["id"]] = document["name"]
    return made(DeploymentView, document)


def reached_at(remote: Remote, deployment_id: object) -> ReachedView:
    """Where it is reached."""
    return made(ReachedView, remote.get(of_id(remote, deployment_id)))


def rules_of(remote: Remote, deployment_ids: Sequence[UUID]) -> dict[UUID, AutoscalingState]:
    """The autoscaling rules by deployment, those with rules only, and no values of metrics."""
    found = {each: made(AutoscalingState, remote.get(of_id(remote, each, "/autoscaling"))) for each in deployment_ids}
    return {deployment_id: rules for deployment_id, rules in found.items() if rules.rules}


def revisions_of(remote: Remote, deployment_id: UUID, limit: int) -> list[RevisionView]:
    """The newest revisions, newest first."""
    found = remote.get(of_id(remote, deployment_id, "/revisions"), limit=limit)
    return [made(RevisionView, document) for document in found["items"]]


def revision_shown(remote: Remote, deployment_id: UUID, name: str) -> RevisionView | None:
    """The revision of that name, masked."""
    try:
        return made(RevisionView, remote.get(of_id(remote, deployment_id, f"/revisions/{quote(name, '')}")))
    except RevisionNotFoundError:
        return None


def hidden_differences(remote: Remote, deployment_id: UUID, before: str, after: str) -> list[str]:
    """The variables of two revisions whose values differ and are shown of neither."""
    path = of_id(remote, deployment_id, f"/revisions/{quote(before, '')}/difference")
    return list(remote.get(path, other=after)["hidden"])


def all_routes(remote: Remote, deployment_id: UUID, limit: int) -> list[RouteView]:
    """The newest routes, those that are gone too."""
    found = remote.get(of_id(remote, deployment_id, "/routes"), gone="true", limit=limit)
    return [made(RouteView, document) for document in found["items"]]


def last_failed_route(remote: Remote, deployment_id: UUID) -> RouteView | None:
    """The replica that failed last."""
    found = remote.get(of_id(remote, deployment_id, "/routes"))["last_failed"]
    return made(RouteView, found) if found else None


def routes_abbreviated(remote: Remote, digits: str) -> list[RouteView]:
    """Routes whose id begins or ends with these digits; the names of their deployments are remembered."""
    found = remote.get("/v1/routes", id=digits)["items"]
    remote.names |= {document["deployment_id"]: document["deployment"] for document in found}
    return [made(RouteView, document) for document in found]


def history_of(remote: Remote, deployment_id: UUID, limit: int) -> list[HistoryView]:
    """The last records of the timeline, oldest first."""
    found = pages(remote, of_id(remote, deployment_id, "/history"), limit)
    return [made(HistoryView, document) for document in found][::-1]


def progress_of(remote: Remote, deployment_id: UUID, rollout_id: UUID | None, after_step: int) -> Progress:
    """What who waits for a rollout looks at again and again."""
    path = of_id(remote, deployment_id, "/progress")
    return made(Progress, remote.get(path, rollout=rollout_id, after=after_step if rollout_id else None))
