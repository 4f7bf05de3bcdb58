"""The reads of deployments and revisions, from one snapshot of Postgres, in the shapes that `--json` has."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Literal

from psycopg import Connection

from api.people.reads.read_table import Shape
from api.people.requests import (
    AbbreviatedParameters,
    Asked,
    DifferenceParameters,
    LatelyParameters,
    NamedPageParameters,
    PageParameters,
    Parameters,
    ProgressParameters,
    RouteParameters,
)
from db.views.caller_views import CallersView, LosingView, callers_of
from db.views.caller_views import losing as losing_ones
from db.views.change_feed import HappenedView
from db.views.change_feed import lately as happened
from db.views.deployment_view import DeploymentView
from db.views.deployment_views import deployment_by_id, deployment_named
from db.views.documents import deployment_document, deployment_summary, rollout_document
from db.views.fleet_views import ReachedView
from db.views.pages import Page, deployments_page, history_page, kept_page, revisions_page, rollouts_page
from db.views.rollout_views import KeptRollout, RolloutView
from db.views.route_views import RouteView, all_routes, last_failed_route, routes_abbreviated
from db.views.timeline import HistoryView, Progress, RevisionView, hidden_differences, progress_of, revision_shown
from domain.cycle.status_line import Tone
from domain.text.errors import RevisionNotFoundError, RolloutNotFoundError

Document = dict[str, Any]

_SUMMARY: Mapping[str, object] = {
    **dict.fromkeys(("state", "word", "said", "picture", "overdue"), str),
    "tone": Tone,
    "waits_for": Literal["", "resume", "promote", "abort"],
}

Listed = Annotated[Document, Shape((DeploymentView,), "page", _SUMMARY)]

Detailed = Annotated[Document, Shape((DeploymentView, ReachedView), more={**_SUMMARY, "revisions": list[RevisionView]})]

Rollouts = Annotated[Document, Shape((RolloutView,), "page")]

Replicas = Annotated[Document, Shape((RouteView,), "whole", beside={"last_failed": RouteView | None})]


Abbreviated = Annotated[Document, Shape((RouteView,), "whole", {"deployment": str})]


def deployments(connection: Connection, asked: Asked[NamedPageParameters]) -> Listed:
    """The deployments that the token is for."""
    names = None if asked.token.is_for_all else asked.token.deployments
    wanted = asked.parameters
    page = deployments_page(connection, names, wanted.cursor, wanted.limit, wanted.prefix)
    return {"items": [deployment_summary(view) for view in page.items], "next": page.next}


def deployment(connection: Connection, asked: Asked[Parameters]) -> Detailed:
    """One, with where it is reached and its newest revisions."""
    return deployment_document(connection, asked.deployment)


def rollouts(
    connection: Connection, asked: Asked[PageParameters]
) -> Annotated[Document, Shape((RolloutView,), "page")]:
    """The rollouts of a deployment."""
    view = named(connection, asked)
    return page_of(rollouts_page(connection, view.id, asked.parameters.cursor, asked.parameters.limit))


def receipts(
    connection: Connection, asked: Asked[PageParameters]
) -> Annotated[Document, Shape((KeptRollout,), "page")]:
    """Show rollouts of a deployment that are forgotten but for their receipts, the newest first."""
    view = named(connection, asked)
    return page_of(kept_page(connection, view.id, asked.parameters.cursor, asked.parameters.limit))


def history(connection: Connection, asked: Asked[PageParameters]) -> Annotated[Document, Shape((HistoryView,), "page")]:
    """Show what happened to a deployment, the newest first."""
    view = named(connection, asked)
    return page_of(history_page(connection, view.id, asked.parameters.cursor, asked.parameters.limit))


def routes(connection: Connection, asked: Asked[RouteParameters]) -> Replicas:
    """The replicas of a deployment, and the one that failed last."""
    view = named(connection, asked)
    found = all_routes(connection, view.id, asked.parameters.limit) if asked.parameters.gone else view.routes
    return {"items": found, "last_failed": last_failed_route(connection, view.id)}


def progress(connection: Connection, asked: Asked[ProgressParameters]) -> Annotated[Document, Shape((Progress,))]:
    """Show what who waits for a rollout looks at again and again."""
    view = named(connection, asked)
    wanted = asked.parameters.rollout
    if wanted is not None and rollout_document(connection, wanted)["deployment"] != view.name:
        raise RolloutNotFoundError(f"{view.name} has no rollout {wanted}", rollout_id=wanted)
    found = progress_of(connection, view.id, wanted, asked.parameters.after)
    return {**asdict(found), "deployment": deployment_summary(found.deployment)}


def named(connection: Connection, asked: Asked[Any]) -> DeploymentView:
    """The deployment in the path. Raises DeploymentNotFoundError."""
    return deployment_named(connection, asked.deployment)


def page_of(page: Page[Any]) -> Document:
    """As JSON has it: its items, and the cursor of the next one."""
    return {"items": page.items, "next": page.next}


def find_routes(connection: Connection, asked: Asked[AbbreviatedParameters]) -> Abbreviated:
    """Replicas, of deployments that the token is for, whose id begins or ends so; 10 at most."""
    names = None if asked.token.is_for_all else list(asked.token.deployments)
    found = routes_abbreviated(connection, asked.parameters.id, names)
    whose = {route.deployment_id: deployment_by_id(connection, route.deployment_id).name for route in found}
    return {"items": [{**asdict(route), "deployment": whose[route.deployment_id]} for route in found]}


Revisions = Annotated[Document, Shape((RevisionView,), "page")]

Compared = Annotated[Document, Shape((), more={"before": RevisionView, "after": RevisionView, "hidden": list[str]})]


def revisions(
    connection: Connection, asked: Asked[NamedPageParameters]
) -> Annotated[Document, Shape((RevisionView,), "page")]:
    """The revisions of a deployment."""
    view, wanted = named(connection, asked), asked.parameters
    return page_of(revisions_page(connection, view.id, wanted.cursor, wanted.limit, wanted.prefix))


def revision(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((RevisionView,))]:
    """One, the values of its variables masked."""
    view, name = named(connection, asked), asked.path["revision"]
    return asdict(revision_found(revision_shown(connection, view.id, name), view.name, name))


def revision_difference(connection: Connection, asked: Asked[DifferenceParameters]) -> Compared:
    """Two revisions, their values masked; `hidden` names the variables whose values differ nevertheless."""
    view, names = named(connection, asked), (asked.path["revision"], asked.parameters.other)
    before, after = (revision_found(revision_shown(connection, view.id, name), view.name, name) for name in names)
    hidden = hidden_differences(connection, view.id, *names)
    return {"before": asdict(before), "after": asdict(after), "hidden": hidden}


def revision_found(revision: RevisionView | None, deployment: str, name: str) -> RevisionView:
    """The revision of that name, as it was looked for. Raises RevisionNotFoundError where there was none."""
    if revision is None:
        message = f"{deployment} has no revision {name}; its revisions are under /v1/deployments/{deployment}/revisions"
        raise RevisionNotFoundError(message, deployment=deployment, revision=name)
    return revision


def requests(connection: Connection, asked: Asked[Parameters]) -> CallersView:
    """Show what callers got in the last hour by the minute, and now by revision."""
    return callers_of(connection, named(connection, asked).id)


def losing(connection: Connection, asked: Asked[Parameters]) -> Annotated[Document, Shape((LosingView,), "whole")]:
    """The deployments, of those that the token is for, whose callers get failures now."""
    return {"items": losing_ones(connection, _names(asked))}


def lately(
    connection: Connection, asked: Asked[LatelyParameters]
) -> Annotated[Document, Shape((HappenedView,), "whole")]:
    """Show what happened within the last hour to all deployments that the token is for, the newest first."""
    return {"items": happened(connection, _names(asked), asked.parameters.limit)}


def _names(asked: Asked[Any]) -> Sequence[str] | None:
    return None if asked.token.is_for_all else asked.token.deployments
