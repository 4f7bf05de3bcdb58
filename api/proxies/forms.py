"""The table in the forms that Traefik, Prometheus and people read."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Query

from api.proxies.parts import Parts, TheParts
from api.proxies.publisher import Published
from db.proxies.acks import SeenProxy
from domain.traffic.nodes import NodeId
from traffic.prometheus import prometheus_targets
from traffic.traefik import traefik_document


def _shows_token(
    parts: TheParts, node: NodeId | None = None, token: Annotated[str, Query(max_length=100)] = ""
) -> None:
    parts.access.check(node or "", token)


forms = APIRouter(dependencies=[Depends(_shows_token)])


@forms.get("/traefik")
async def traefik(
    parts: TheParts,
    node: NodeId,
    poll_seconds: Annotated[float, Query(gt=0, le=60)] = 5,
    throttle_seconds: Annotated[float, Query(ge=0, le=60)] = 2,
) -> dict[str, Any]:
    """For Traefik's HTTP provider. Replicas that leave wait for it: it must poll that often.

    `throttle_seconds`: its providersThrottleDuration, which is 2 s by default.
    """
    if parts.recorder.presence.kind_of(node) == "envoy":
        raise HTTPException(409, f"{node} is the id of an Envoy; each proxy needs an id of its own.")
    current = await parts.whole_tables.poll(SeenProxy(node, "traefik", 3 * poll_seconds), throttle_seconds)
    return traefik_document((current or _current(parts)).table)


@forms.get("/prometheus/targets")
async def targets(parts: TheParts) -> list[dict[str, Any]]:
    """For Prometheus' `http_sd_configs`."""
    return prometheus_targets(_current(parts).table)


@forms.get("/v1/traffic")
async def table(parts: TheParts) -> dict[str, Any]:
    """The table for people, with the proxies that this server tells: whether each knows it, and what it knows."""
    current = _current(parts)
    return {
        "version": current.resources.version,
        "age_seconds": round(parts.publisher.age, 3),
        "services": [asdict(service) for service in current.table.services],
        "left_out": current.table.faults,
        "proxies": [_proxy(parts, proxy, current) for proxy in sorted(parts.recorder.presence.live, key=_node_id)],
    }


def _node_id(proxy: SeenProxy) -> str:
    return proxy.node_id


def _proxy(parts: Parts, proxy: SeenProxy, current: Published) -> dict[str, Any]:
    known = parts.recorder.watermark(proxy.node_id)
    version = known.version if known else None
    return {"node": proxy.node_id, "version": version, "is_current": version == current.resources.version}


def _current(parts: Parts) -> Published:
    if parts.publisher.current is None:
        raise HTTPException(503, "The table has not been read from Postgres yet; ask again in a moment.")
    return parts.publisher.current
