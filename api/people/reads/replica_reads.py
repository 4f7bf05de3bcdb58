"""Reads of replicas: their output and how each answers, from their hosts through Redis."""

from dataclasses import asdict, dataclass
from typing import Annotated
from uuid import UUID

import structlog
from psycopg import Connection
from redis.exceptions import RedisError

from api.people.reads.deployment_reads import Document, revision_found, view_of
from api.people.reads.read_table import Shape
from api.people.requests import LogParameters, ReadRequest, RevisionParameters
from db.locking.upstream import tls_of_revisions
from db.views.fleet_views import reached_at
from db.views.route_views import RouteView, routes_of
from db.views.timeline import revision_named
from domain.replicas.host_choice import EXTERNAL
from domain.revisions.health_check import HealthCheck
from domain.traffic.snapshot import EntranceKind
from tasks.hosts.host_rpc import MOST_REPLICAS, ExaminedReplica, examine_replicas, read_logs
from tasks.worker.connections import redis_client

_log = structlog.get_logger(__name__)
_WITHOUT_CHECK = HealthCheck(path="/")
"""The check for replicas whose revision has none."""


@dataclass(frozen=True, slots=True)
class ExaminedView:
    """How a replica answers. `saw`: the answer to a probe; `advice`: what mends it; null where nothing is wrong."""

    route: UUID
    revision: str
    status: str
    host: str
    address: str | None
    saw: str
    advice: str | None


Answered = Annotated[Document, Shape((ExaminedView,), "whole", extras={"silent": list[str]})]


def probe(connection: Connection, request: ReadRequest[RevisionParameters]) -> Answered:
    """Show how replicas of a deployment answer, as their hosts find; `silent` names the hosts that do not say it.

    20 replicas are examined at most, the newest first.
    """
    view, only = view_of(connection, request), request.parameters.revision
    if only is not None:
        revision_found(revision_named(connection, view.id, only), view.name, only)
    routes = [route for route in view.routes if only in (None, route.revision) and route.host not in (None, EXTERNAL)]
    host, names = _callers_host(connection, view.id), {route.revision for route in routes}
    tls = tls_of_revisions(connection, view.id, list(names))
    runs = {name: _runs(connection, view.id, name) for name in names}
    hosts: dict[str, list[tuple[RouteView, ExaminedReplica]]] = {}
    for route in sorted(routes, key=lambda route: route.id, reverse=True)[:MOST_REPLICAS]:
        runtime, check = runs[route.revision]
        replica = ExaminedReplica(
            route=route.id, runtime=runtime, check=check, callers_host=host, tls=tls[route.revision]
        )
        hosts.setdefault(str(route.host), []).append((route, replica))
    return {"hosts": hosts}


def as_hosts_find(_request: ReadRequest[RevisionParameters], document: Document) -> Document:
    """Ask the hosts, for 40 s at most. While Redis is away all of them are silent."""
    hosts = document["hosts"]
    try:
        answers = examine_replicas(
            redis_client(), {host: tuple(each for _, each in some) for host, some in hosts.items()}
        )
    except RedisError as error:
        _log.warning("hosts cannot be asked for examinations", error=str(error).partition("\n")[0])
        answers = {}
    by_route = {each.route: each for some in answers.values() for each in some}
    items = [
        asdict(
            ExaminedView(
                *(route.id, route.revision, route.status, host, route.address),
                saw=by_route[route.id].saw,
                advice=by_route[route.id].advice,
            )
        )
        for host, some in hosts.items()
        for route, _ in some
        if route.id in by_route
    ]
    return {"items": items, "silent": sorted(set(hosts) - set(answers))}


def _callers_host(connection: Connection, deployment_id: UUID) -> str:
    """The first host name of the deployment; of a wildcard a name below it."""
    entrances = reached_at(connection, deployment_id).entrances
    names = (entrance.value for entrance in entrances if entrance.kind is EntranceKind.HOST)
    return next(names, "localhost").replace("*.", "www.", 1)


def _runs(connection: Connection, deployment_id: UUID, revision: str) -> tuple[str, HealthCheck]:
    """The runtime of a revision, and its check."""
    row = revision_named(connection, deployment_id, revision)
    spec = row.spec if row else {}
    check = spec.get("health_check")
    return spec.get("runtime", "process"), HealthCheck.model_validate(check) if check else _WITHOUT_CHECK


@dataclass(frozen=True, slots=True)
class LogView:
    """The output of a replica: whole lines, and where to read on."""

    route: UUID
    host: str
    text: str
    place: int


Printed = Annotated[Document, Shape((LogView,), "whole", extras={"silent": list[str]})]


def logs(connection: Connection, request: ReadRequest[LogParameters]) -> Printed:
    """Show what replicas of a deployment have printed, as their hosts say; `silent` names the hosts that do not."""
    view, requested = view_of(connection, request), request.parameters.places
    places = {each.route: each.place for each in requested or ()}
    routes = view.routes if requested is None else routes_of(connection, view.name, list(places))
    hosts: dict[str, dict[UUID, int | None]] = {}
    for route in routes:
        if route.host not in (None, EXTERNAL):
            hosts.setdefault(str(route.host), {})[route.id] = places.get(route.id)
    return {"hosts": hosts}


def as_hosts_say(request: ReadRequest[LogParameters], document: Document) -> Document:
    """Ask the hosts, for 3 s at most. While Redis is away all of them are silent."""
    hosts = document["hosts"]
    try:
        answers = read_logs(redis_client(), hosts, request.parameters.lines)
    except RedisError as error:
        _log.warning("hosts cannot be asked for logs", error=str(error).partition("\n")[0])
        answers = {}
    items = [
        LogView(route_id, host, piece.text, piece.place)
        for host, pieces in answers.items()
        for route_id, piece in pieces.items()
    ]
    return {"items": items, "silent": sorted(set(hosts) - set(answers))}
