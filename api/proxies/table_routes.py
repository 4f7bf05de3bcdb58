"""The table in the formats of Traefik, Prometheus and people."""

from dataclasses import asdict
from operator import attrgetter
from typing import Any, TypeVar

from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.proxies.components import Parts, parts_of
from api.proxies.publisher import Published
from db.proxies.acks import SeenProxy
from domain.traffic.nodes import NodeId
from traffic.prometheus import prometheus_targets
from traffic.traefik import traefik_document


class ShownToken(BaseModel):
    """The node id and token of a reader, after the `?`."""

    node: NodeId | None = None
    token: str = Field("", max_length=100)


class TraefikPoll(ShownToken):
    """A poll of Traefik. `throttle_seconds`: its providersThrottleDuration, which is 2 s by default."""

    node: NodeId
    poll_seconds: float = Field(5, gt=0, le=60)
    throttle_seconds: float = Field(2, ge=0, le=60)


Q = TypeVar("Q", bound=ShownToken)


def _parse(request: Request, kind: type[Q]) -> tuple[Parts, Q]:
    """The query, from the holder of a token. Raises ValidationError and HTTPException."""
    query, parts = kind.model_validate(dict(request.query_params)), parts_of(request)
    parts.access.check(query.node or "", query.token)
    return parts, query


async def traefik(request: Request) -> Response:
    """For Traefik's HTTP provider. Draining replicas wait for it: it must poll at the rate that it names."""
    parts, poll = _parse(request, TraefikPoll)
    if parts.recorder.presence.kind_of(poll.node) == "envoy":
        raise HTTPException(409, f"{poll.node} is the id of an Envoy; each proxy needs an id of its own.")
    proxy = SeenProxy(poll.node, "traefik", 3 * poll.poll_seconds)
    current = await parts.whole_tables.poll(proxy, poll.throttle_seconds)
    return JSONResponse(traefik_document((current or _current(parts)).table))


async def targets(request: Request) -> Response:
    parts, _ = _parse(request, ShownToken)
    return JSONResponse(prometheus_targets(_current(parts).table))


async def table(request: Request) -> Response:
    """The table for people, with the proxies of this server: whether each knows it, and what it knows."""
    parts, _ = _parse(request, ShownToken)
    current = _current(parts)
    proxies = sorted(parts.recorder.presence.live, key=attrgetter("node_id"))
    document = {
        "version": current.resources.version,
        "age_seconds": round(parts.publisher.age, 3),
        "services": [asdict(service.public) for service in current.table.services],
        "left_out": current.table.faults,
        "proxies": [_proxy(parts, proxy, current) for proxy in proxies],
    }
    return Response(to_json(document), media_type="application/json")


FORMS = [Route("/traefik", traefik), Route("/prometheus/targets", targets), Route("/v1/traffic", table)]


def _proxy(parts: Parts, proxy: SeenProxy, current: Published) -> dict[str, Any]:
    mark = parts.recorder.watermark(proxy.node_id)
    version = mark.version if mark else None
    return {"node": proxy.node_id, "version": version, "is_current": version == current.resources.version}


def _current(parts: Parts) -> Published:
    if parts.publisher.current is None:
        raise HTTPException(503, "The table has not been read from Postgres yet; ask again in a moment.")
    return parts.publisher.current
