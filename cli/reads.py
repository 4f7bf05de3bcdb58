"""Reads that several commands need: a deployment, its revisions and what failed last, and signs of life."""

from datetime import timedelta

from cli.servers import Reader, made
from db.views.deployment_view import DeploymentView
from db.views.fleet.signs import SignsOfLife
from db.views.routes import RouteView
from db.views.timeline import RevisionView
from domain.commands.base import DEPLOYMENT
from domain.words.errors import RevisionNotFoundError

_RECENTLY = timedelta(hours=1)


def deployment_named(reader: Reader, name: str) -> DeploymentView:
    """The deployment of that name. Raises DeploymentNotFoundError."""
    return reader.view(DeploymentView, DEPLOYMENT, name)


def existing_deployments(reader: Reader, most: int | None = None) -> list[DeploymentView]:
    """All that are not destroyed, or all that the token is for; the first `most` by name."""
    return reader.views(DeploymentView, "/v1/deployments", most=most)


def signs_of_life(reader: Reader) -> SignsOfLife:
    """When workers, beat and the server for proxies were heard of last."""
    return reader.view(SignsOfLife, "/v1/signs-of-life")


def revision_shown(reader: Reader, deployment: str, name: str) -> RevisionView | None:
    """The revision of that name, masked; None where there is none."""
    try:
        return reader.view(RevisionView, f"{DEPLOYMENT}/revisions/{{revision}}", deployment, name)
    except RevisionNotFoundError:
        return None


def failure_to_show(reader: Reader, view: DeploymentView) -> RouteView | None:
    """The replica that failed last, where starts fail, a rollout had failures, or it ended within the last hour."""
    failed = last_failed_route(reader, view.name)
    is_failing = view.failed_starts or view.degraded_reason or (view.rollout and view.rollout.failed_routes)
    is_shown = failed is not None and (is_failing or view.now - failed.status_changed_at < _RECENTLY)
    return failed if is_shown else None


def last_failed_route(reader: Reader, deployment: str) -> RouteView | None:
    """The replica that failed last."""
    found = reader.ask(f"{DEPLOYMENT}/routes", deployment)["last_failed"]
    return made(RouteView, found) if found else None
