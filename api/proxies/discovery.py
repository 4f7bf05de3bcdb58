"""Envoy's REST xDS: one long poll for each of its subscriptions."""

import asyncio

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from api.proxies.parts import TheParts
from domain.traffic.nodes import NodeId
from traffic.resources import ResourceKind, Subscription

discovery = APIRouter()


class _Metadata(BaseModel):
    """What the bootstrap gives a proxy to show."""

    rollway_token: str = Field(default="", max_length=100)
    rollway_stats_port: int | None = Field(default=None, ge=1, le=65_535)


class _Node(BaseModel):
    id: NodeId
    metadata: _Metadata = _Metadata()


class DiscoveryRequest(BaseModel):
    """The fields of Envoy's DiscoveryRequest that matter here."""

    node: _Node
    version_info: str = Field(default="", max_length=100)
    resource_names: list[str] = Field(default_factory=list, max_length=1)


@discovery.post("/v3/discovery:{kind}")
async def discover(kind: ResourceKind, poll: DiscoveryRequest, request: Request, parts: TheParts) -> Response:
    """One poll of an Envoy's, held until there is something else for it; 304 when there is not."""
    parts.access.check(poll.node.id, poll.node.metadata.rollway_token)
    name = poll.resource_names[0] if poll.resource_names and kind is not ResourceKind.CLUSTERS else ""
    stats = _stats_address(request, poll.node.metadata.rollway_stats_port)
    hung_up = asyncio.ensure_future(request.receive())
    try:
        found = await parts.polls.poll(poll.node.id, Subscription(kind, name), poll.version_info, hung_up, stats)
    finally:
        hung_up.cancel()
    return Response(status_code=304) if found is None else Response(found.answer, media_type="application/json")


def _stats_address(request: Request, port: int | None) -> str | None:
    """Where it tells what it has counted: on the host that it polls from."""
    if request.client is None or port is None:
        return None
    host = request.client.host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
