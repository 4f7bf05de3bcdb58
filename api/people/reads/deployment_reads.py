"""The reads of deployments and revisions, from one snapshot of Postgres, in the shapes that `--json` has."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal

from psycopg import Connection
from pydantic import Field

from api.people.reads.read_table import Shape
from api.people.requests import (
    AbbreviatedParameters,
    ActivityParameters,
    DifferenceParameters,
    HistoryParameters,
    NamedPageParameters,
    PageParameters,
    Parameters,
    ProgressParameters,
    ReadRequest,
    RouteParameters,
)
from db.views.activity import ActivityFilter, HappenedView, activity
from db.views.caller_views import CallersView, LosingView, callers_of
from db.views.caller_views import losing as losing_ones
from db.views.deployment_view import DeploymentView
from db.views.deployment_views import deployment_by_id, deployment_named, existing_names
from db.views.documents import deployment_document, deployment_summary, rollout_document
from db.views.fleet_views import ReachedView
from db.views.pages import Page, deployments_page, history_page, kept_page, revisions_page, rollouts_page
from db.views.rollout_views import KeptRollout, RolloutView
from db.views.route_views import RouteView, all_routes, last_failed_route, routes_abbreviated
from db.views.timeline import HistoryView, Progress, RevisionView, hidden_differences, progress_of, revision_shown
from domain.installation.settings import Settings
from domain.installation.tokens import Role
from domain.model.deed_kinds import PHASES
from domain.model.picture import Tone
from domain.text.errors import DeploymentNotFoundError, RevisionNotFoundError, RolloutNotFoundError

Document = dict[str, Any]
_MOST_NAMES = 5000
"""The most names that a wrong one is compared with."""

_SUMMARY: Mapping[str, object] = {
    **dict.fromkeys(("state", "word", "said", "picture", "overdue", "runs"), str),
    "tone": Tone,
    "waits_for": Literal["", "resume", "promote", "abort"],
}

Listed = Annotated[Document, Shape((DeploymentView,), "page", _SUMMARY)]

_DETAILS: Mapping[str, object] = {**_SUMMARY, "urls": list[str], "revisions": list[RevisionView]}

Detailed = Annotated[Document, Shape((DeploymentView, ReachedView), more=_DETAILS)]

Rollouts = Annotated[Document, Shape((RolloutView,), "page")]

Replicas = Annotated[Document, Shape((RouteView,), "whole", extras={"last_failed": RouteView | None})]


Abbreviated = Annotated[Document, Shape((RouteView,), "whole", {"deployment": str})]


class CallersSettings(Settings):
    """The setting for the address that callers use on this machine."""

    callers_url: str = Field(
        "", validation_alias="ROLLWAY_CALLERS_URL", description="a URL such as http://127.0.0.1:80"
    )
    """The URL of the Envoy of this machine, for the links of the page; `rollway up` sets it."""


@cache
def callers_url() -> str:
    return CallersSettings.from_environment(os.environ).callers_url


def deployments(connection: Connection, request: ReadRequest[NamedPageParameters]) -> Listed:
    """The deployments that the token is for."""
    names = None if request.token.is_for_all else request.token.deployments
    parameters = request.parameters
    page = deployments_page(connection, names, parameters.cursor, parameters.limit, parameters.prefix)
    return {"items": [deployment_summary(view) for view in page.items], "next": page.next}


def deployment(connection: Connection, request: ReadRequest[Parameters]) -> Detailed:
    """One, with where it is reached and its newest revisions."""
    try:
        return deployment_document(connection, request.deployment, callers_url())
    except DeploymentNotFoundError as error:
        near = ", ".join(get_close_matches(request.deployment, existing_names(connection, _MOST_NAMES)))
        raise DeploymentNotFoundError(error.message, **error.detail, **({"near": near} if near else {})) from None


def rollouts(
    connection: Connection, request: ReadRequest[PageParameters]
) -> Annotated[Document, Shape((RolloutView,), "page")]:
    """The rollouts of a deployment."""
    view = view_of(connection, request)
    return page_of(rollouts_page(connection, view.id, request.parameters.cursor, request.parameters.limit))


def receipts(
    connection: Connection, request: ReadRequest[PageParameters]
) -> Annotated[Document, Shape((KeptRollout,), "page")]:
    """Show rollouts of a deployment of which only the receipts are kept, the newest first."""
    view = view_of(connection, request)
    return page_of(kept_page(connection, view.id, request.parameters.cursor, request.parameters.limit))


def history(
    connection: Connection, request: ReadRequest[HistoryParameters]
) -> Annotated[Document, Shape((HistoryView,), "page")]:
    """Show what happened to a deployment, the newest first."""
    view, page = view_of(connection, request), request.parameters
    return page_of(history_page(connection, view.id, page.cursor, page.limit, is_of_people=page.people))


def routes(connection: Connection, request: ReadRequest[RouteParameters]) -> Replicas:
    """The replicas of a deployment, and the one that failed last."""
    view = view_of(connection, request)
    rows = all_routes(connection, view.id, request.parameters.limit) if request.parameters.gone else view.routes
    return {"items": rows, "last_failed": last_failed_route(connection, view.id)}


def progress(
    connection: Connection, request: ReadRequest[ProgressParameters]
) -> Annotated[Document, Shape((Progress,))]:
    """Show the progress of a rollout, for clients that wait for it."""
    view = view_of(connection, request)
    rollout_id = request.parameters.rollout
    if rollout_id is not None and rollout_document(connection, rollout_id)["deployment"] != view.name:
        raise RolloutNotFoundError(f"{view.name} has no rollout {rollout_id}", rollout_id=rollout_id)
    state = progress_of(connection, view.id, rollout_id, request.parameters.after)
    return {**asdict(state), "deployment": deployment_summary(state.deployment)}


def view_of(connection: Connection, request: ReadRequest[Any]) -> DeploymentView:
    """The deployment in the path. Raises DeploymentNotFoundError."""
    return deployment_named(connection, request.deployment)


def page_of(page: Page[Any]) -> Document:
    """A page as JSON: its items, and the cursor of the next one."""
    return {"items": page.items, "next": page.next}


def find_routes(connection: Connection, request: ReadRequest[AbbreviatedParameters]) -> Abbreviated:
    """Replicas, of deployments that the token is for, by the beginning or end of their id; 10 at most."""
    names = None if request.token.is_for_all else list(request.token.deployments)
    rows = routes_abbreviated(connection, request.parameters.id, names)
    whose = {route.deployment_id: deployment_by_id(connection, route.deployment_id).name for route in rows}
    return {"items": [{**asdict(route), "deployment": whose[route.deployment_id]} for route in rows]}


Revisions = Annotated[Document, Shape((RevisionView,), "page")]

Compared = Annotated[Document, Shape((), more={"before": RevisionView, "after": RevisionView, "hidden": list[str]})]


def revisions(
    connection: Connection, request: ReadRequest[NamedPageParameters]
) -> Annotated[Document, Shape((RevisionView,), "page")]:
    """The revisions of a deployment."""
    view, page = view_of(connection, request), request.parameters
    return page_of(revisions_page(connection, view.id, page.cursor, page.limit, page.prefix))


def revision_difference(connection: Connection, request: ReadRequest[DifferenceParameters]) -> Compared:
    """Two revisions, their values masked; `hidden` names the variables whose values differ nevertheless."""
    view, names = view_of(connection, request), (request.path["revision"], request.parameters.other)
    before, after = (revision_found(revision_shown(connection, view.id, name), view.name, name) for name in names)
    hidden = hidden_differences(connection, view.id, *names)
    return {"before": asdict(before), "after": asdict(after), "hidden": hidden}


def revision_found(revision: RevisionView | None, deployment: str, name: str) -> RevisionView:
    """The revision of that name. Raises RevisionNotFoundError where there is none."""
    if revision is None:
        message = f"{deployment} has no revision {name}; its revisions are under /v1/deployments/{deployment}/revisions"
        raise RevisionNotFoundError(message, deployment=deployment, revision=name)
    return revision


def requests(connection: Connection, request: ReadRequest[Parameters]) -> CallersView:
    """Show what callers got in the last hour by the minute, and now by revision."""
    return callers_of(connection, view_of(connection, request).id)


def losing(
    connection: Connection, request: ReadRequest[Parameters]
) -> Annotated[Document, Shape((LosingView,), "whole")]:
    """The deployments, of those that the token is for, whose callers get failures now."""
    return {"items": losing_ones(connection, _names(request))}


def lately(
    connection: Connection, request: ReadRequest[ActivityParameters]
) -> Annotated[Document, Shape((HappenedView,), "page")]:
    """Show what happened in the fleet, the newest first: to deployments that the token is for, and without one.

    Freezes, groups, hosts and subscriptions need a token for all deployments, tokens and sign-ins the role admin too.
    """
    parameters, token = request.parameters, request.token
    if parameters.deployment is not None:
        token.refuse_others(parameters.deployment)
    selection = ActivityFilter(
        names=_names(request) if parameters.deployment is None else [parameters.deployment],
        since=parameters.since,
        until=parameters.until,
        who=parameters.who,
        phases=PHASES[parameters.kind] if parameters.kind else None,
        is_of_people=parameters.people or parameters.kind is not None,
        is_admin=token.may(Role.ADMIN),
    )
    return page_of(activity(connection, selection, parameters.cursor, parameters.limit))


def _names(request: ReadRequest[Any]) -> Sequence[str] | None:
    return None if request.token.is_for_all else request.token.deployments
