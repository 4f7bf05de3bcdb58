"""Turns reads for people into JSON: the same for `--json` and for services that ask by a task."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from typing import Any
from uuid import UUID

from psycopg import Connection

from db.views.deployment_view import DeploymentView
from db.views.deployment_views import deployment_named
from db.views.fleet_views import reached_at
from db.views.rollout_views import rollout_of_id
from db.views.timeline import revisions_of
from domain.commands.base import GetDeployment, GetRollout, Query

_REVISIONS = 20
_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"

_PLANNED_ANEW = "SET LOCAL plan_cache_mode = force_custom_plan"


def deployment_summary(view: DeploymentView) -> dict[str, Any]:
    """A deployment with its routes and its running rollout, in values of JSON."""
    names = ("state", "said", "picture", "overdue", "runs")
    summary: dict[str, Any] = {name: getattr(view, name) for name in names}
    return {**plain(view), **summary, **plain(view.standing._asdict())}


def deployment_document(connection: Connection[Any], name: str, envoy: str = "") -> dict[str, Any]:
    """A deployment with where it is reached and its newest revisions. Raises DeploymentNotFoundError.

    `envoy`: the URL of a proxy of this machine, for its `urls`.
    """
    view = deployment_named(connection, name)
    where = reached_at(connection, view.id)
    reach = {**asdict(where), "urls": where.urls(envoy)}
    revisions = [asdict(revision) for revision in revisions_of(connection, view.id, _REVISIONS)]
    return {**deployment_summary(view), **reach, "revisions": revisions}


def rollout_document(connection: Connection[Any], rollout_id: UUID) -> dict[str, Any]:
    """A rollout, under way or ended. Raises RolloutNotFoundError."""
    return asdict(rollout_of_id(connection, rollout_id))


def begin_reading(connection: Connection[Any]) -> None:
    """Begin a read for people: all of it is of one moment, and filters that are left out cost nothing."""
    connection.execute(_SNAPSHOT)
    connection.execute(_PLANNED_ANEW)


def answer_of(connection: Connection[Any], query: Query) -> dict[str, Any]:
    """Answer a query, from one snapshot of Postgres, in values of JSON alone. Raises what finding it raises."""
    begin_reading(connection)
    answer: dict[str, Any] = plain(_ANSWERS[type(query)](connection, query))
    return answer


_ANSWERS: Mapping[type[Query], Callable[[Connection[Any], Any], dict[str, Any]]] = {
    GetDeployment: lambda connection, query: deployment_document(connection, query.deployment),
    GetRollout: lambda connection, query: rollout_document(connection, query.rollout_id),
}


def plain(value: Any) -> Any:  # noqa: ANN401  # JSON is any of these
    """Times as ISO 8601 in UTC, ids and words as text: Celery's JSON would wrap them into objects of its own."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if is_dataclass(kind):
        return {name: plain(getattr(value, name)) for name in _names(kind)}
    match value:
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case datetime():
            return value.isoformat()
        case UUID() | StrEnum():
            return str(value)
        case _:
            return value


_PLAIN = frozenset({str, int, float, bool, type(None)})


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))
