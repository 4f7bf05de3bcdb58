"""What the reads for people are over HTTP: each view with its path, and its document made values again."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

from pydantic import TypeAdapter

from cli.remote import Remote
from db.audit.receipts import deviations_of
from db.freezes import frozen_now
from db.views.deployments import DeploymentView, deployment_by_id, deployment_named, existing_deployments
from db.views.documents import deployment_document
from db.views.entrances import ReachedView, owners_of, reached_at
from db.views.hosts import HostView, all_hosts
from db.views.progress import Progress, progress_of
from db.views.routes import RouteView, all_routes, last_failed_route
from db.views.signs import SignsOfLife, signs_of_life
from db.views.subscriptions import SubscriptionView, all_subscriptions
from db.views.timeline import HistoryView, RevisionView, history_of, revision_like, revisions_of
from db.views.windows import FreezeView, GroupView, freezes_shown, groups_shown
from domain.errors import DeploymentNotFoundError, RevisionNotFoundError
from domain.model import Lifecycle
from domain.replicas.revision import RevisionSpec
from domain.traffic.published import Entrance

T = TypeVar("T")
_PAGE = 500
_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _deployment_named(remote: Remote, name: str) -> DeploymentView:
    return _deployment(remote, _document(remote, name))


def _document(remote: Remote, name: str) -> dict[str, Any]:
    found: dict[str, Any] = remote.get(_path(name))
    remote.names[found["id"]] = name
    return found


def _existing_deployments(remote: Remote, names: Sequence[str] | None = None) -> list[DeploymentView]:
    if names is None:
        return [_deployment(remote, document) for document in _pages(remote, "/v1/deployments")]
    found = []
    for name in names:
        try:
            found.append(_deployment_named(remote, name))
        except DeploymentNotFoundError:
            continue
    return [view for view in found if view.lifecycle is not Lifecycle.DESTROYED]


def _reached_at(remote: Remote, deployment_id: object) -> ReachedView:
    return _made(ReachedView, remote.get(_of_id(remote, deployment_id)))


def _revisions_of(remote: Remote, deployment_id: UUID, limit: int) -> list[RevisionView]:
    found = remote.get(_of_id(remote, deployment_id, "/revisions"), limit=limit)
    return [_made(RevisionView, document) for document in found["items"]]


def _revision_like(remote: Remote, deployment_id: UUID, name: str, spec: RevisionSpec) -> RevisionView | None:
    path = _of_id(remote, deployment_id, f"/revisions/{quote(name, '')}/compare")
    try:
        return _made(RevisionView, remote.ask("POST", path, json={"spec": spec.model_dump(mode="json")}))
    except RevisionNotFoundError:
        return None


def _owners_of(remote: Remote, wanted: Iterable[Entrance], deployment: str) -> dict[Entrance, str]:
    asked = [{"kind": each.kind, "value": each.value, "strip_prefix": each.strip_prefix} for each in wanted]
    found = remote.ask("POST", f"{_path(deployment)}/entrances/owners", json={"entrances": asked})
    return {_made(Entrance, item["entrance"]): item["deployment"] for item in found["items"]}


def _all_routes(remote: Remote, deployment_id: UUID, limit: int) -> list[RouteView]:
    found = remote.get(_of_id(remote, deployment_id, "/routes"), gone="true", limit=limit)
    return [_made(RouteView, document) for document in found["items"]]


def _last_failed_route(remote: Remote, deployment_id: UUID) -> RouteView | None:
    found = remote.get(_of_id(remote, deployment_id, "/routes"))["last_failed"]
    return _made(RouteView, found) if found else None


def _history_of(remote: Remote, deployment_id: UUID, limit: int) -> list[HistoryView]:
    found = _pages(remote, _of_id(remote, deployment_id, "/history"), limit)
    return [_made(HistoryView, document) for document in found][::-1]


def _progress_of(remote: Remote, deployment_id: UUID, rollout_id: UUID | None, after_step: int) -> Progress:
    path = _of_id(remote, deployment_id, "/progress")
    return _made(Progress, remote.get(path, rollout=rollout_id, after=after_step if rollout_id else None))


def _deployment_by_id(remote: Remote, deployment_id: UUID) -> DeploymentView:
    return _deployment(remote, remote.get(_of_id(remote, deployment_id)))


VIEWS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    deployment_named: _deployment_named,
    deployment_by_id: _deployment_by_id,
    existing_deployments: _existing_deployments,
    deployment_document: _document,
    reached_at: _reached_at,
    revisions_of: _revisions_of,
    revision_like: _revision_like,
    owners_of: _owners_of,
    all_routes: _all_routes,
    last_failed_route: _last_failed_route,
    history_of: _history_of,
    progress_of: _progress_of,
    deviations_of: lambda remote, rollout_id: remote.get(f"/v1/rollouts/{rollout_id}/deviations")["items"],
    signs_of_life: lambda remote: _made(SignsOfLife, remote.get("/v1/signs-of-life")),
    frozen_now: lambda _remote, _deployment: None,  # the server looks when the revision is activated
    freezes_shown: lambda remote: [_made(FreezeView, found) for found in remote.get("/v1/freezes")["items"]],
    groups_shown: lambda remote: [_made(GroupView, found) for found in remote.get("/v1/groups")["items"]],
    all_hosts: lambda remote: [_made(HostView, host) for host in remote.get("/v1/hosts")["items"]],
    all_subscriptions: lambda remote: [
        _made(SubscriptionView, found) for found in remote.get("/v1/subscriptions")["items"]
    ],
}
"""By the view that reads the same from the database."""


def _deployment(remote: Remote, document: Mapping[str, Any]) -> DeploymentView:
    remote.names[document["id"]] = document["name"]
    return _made(DeploymentView, document)


def _path(name: str) -> str:
    return f"/v1/deployments/{quote(name, '')}"


def _of_id(remote: Remote, deployment_id: object, more: str = "") -> str:
    """Deployments are asked for by their names; whoever knows an id has read the name first."""
    return f"{_path(remote.names[str(deployment_id)])}{more}"


def _pages(remote: Remote, path: str, limit: int | None = None) -> list[dict[str, Any]]:
    """The items of as many pages as it takes."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while limit is None or len(found) < limit:
        page = remote.get(path, limit=min(_PAGE, limit - len(found)) if limit else _PAGE, cursor=cursor)
        found += page["items"]
        cursor = page["next"]
        if cursor is None:
            break
    return found


def _made(kind: type[T], document: object) -> T:
    """What a later release of the server adds is passed over."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    made: T = _ADAPTERS[kind].validate_python(document)
    return made
