"""Reads replicas' output: Postgres says whose log and where it is, then its host is asked through Redis."""

from dataclasses import dataclass
from typing import Annotated
from uuid import UUID

import structlog
from psycopg import Connection
from redis.exceptions import RedisError

from api.people.asking.asked import Asked, LogParameters
from api.people.reads.deployments import Document, named
from api.people.reads.table import Shape
from db.views.routes import routes_of
from domain.replicas.placement import EXTERNAL
from tasks.hosts.log_asking import read_logs
from tasks.worker.connections import redis_client

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LogView:
    """The output of a replica: whole lines, and where to read on."""

    route: UUID
    host: str
    text: str
    place: int


Printed = Annotated[Document, Shape((LogView,), "whole", beside={"silent": list[str]})]


def logs(connection: Connection, asked: Asked[LogParameters]) -> Printed:
    """Show what replicas of a deployment have printed, as their hosts say; `silent` names the hosts that do not."""
    view, wanted = named(connection, asked), asked.parameters.places
    places = {each.route: each.place for each in wanted or ()}
    routes = view.routes if wanted is None else routes_of(connection, view.name, list(places))
    hosts: dict[str, dict[UUID, int | None]] = {}
    for route in routes:
        if route.host not in (None, EXTERNAL):
            hosts.setdefault(str(route.host), {})[route.id] = places.get(route.id)
    return {"hosts": hosts}


def as_hosts_say(asked: Asked[LogParameters], found: Document) -> Document:
    """Ask the hosts, for 3 s at most. While Redis is away all of them are silent."""
    hosts = found["hosts"]
    try:
        answers = read_logs(redis_client(), hosts, asked.parameters.lines)
    except RedisError as error:
        _log.warning("hosts cannot be asked for logs", error=str(error).partition("\n")[0])
        answers = {}
    items = [
        LogView(route_id, host, piece.text, piece.place)
        for host, pieces in answers.items()
        for route_id, piece in pieces.items()
    ]
    return {"items": items, "silent": sorted(set(hosts) - set(answers))}
