"""The reads of the last hour: what callers got, as proxies tell, and what happened in the fleet."""

from collections.abc import Sequence
from typing import Annotated, Any

from psycopg import Connection

from api.people.reads.deployment_reads import Document, named
from api.people.reads.read_table import Shape
from api.people.requests import Asked, LatelyParameters, Parameters
from db.views.caller_views import CallersView, LosingView, callers_of
from db.views.caller_views import losing as losing_ones
from db.views.change_feed import HappenedView
from db.views.change_feed import lately as happened


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
