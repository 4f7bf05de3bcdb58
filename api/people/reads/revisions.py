"""The reads of revisions: a list, one, and how two differ, the values of their variables masked."""

from dataclasses import asdict
from typing import Annotated

from psycopg import Connection

from api.people.asking.asked import Asked, DifferenceParameters, NamedPageParameters, Parameters
from api.people.reads.deployments import Document, named, page_of
from api.people.reads.shapes import Shape
from db.views.pages import revisions_page
from db.views.timeline import RevisionView, hidden_differences, revision_shown
from domain.words.errors import RevisionNotFoundError

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
    return asdict(_found(revision_shown(connection, view.id, name), view.name, name))


def revision_difference(connection: Connection, asked: Asked[DifferenceParameters]) -> Compared:
    """Two revisions, their values masked; `hidden` names the variables whose values differ nevertheless."""
    view, names = named(connection, asked), (asked.path["revision"], asked.parameters.other)
    before, after = (_found(revision_shown(connection, view.id, name), view.name, name) for name in names)
    hidden = hidden_differences(connection, view.id, *names)
    return {"before": asdict(before), "after": asdict(after), "hidden": hidden}


def _found(revision: RevisionView | None, deployment: str, name: str) -> RevisionView:
    if revision is None:
        message = f"{deployment} has no revision {name}; its revisions are under /v1/deployments/{deployment}/revisions"
        raise RevisionNotFoundError(message, deployment=deployment, revision=name)
    return revision
