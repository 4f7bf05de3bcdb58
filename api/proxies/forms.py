"""The table in the forms that Traefik, Prometheus and people read."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query

from api.proxies.parts import Parts, TheParts
from api.proxies.publisher import Published
from db.proxies.acks import SeenProxy
from traffic.prometheus import prometheus_targets
from traffic.traefik import traefik_document

forms = APIRouter()


@forms.get("/traefik")
async def traefik(
    parts: TheParts,
    node: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
    poll_seconds: Annotated[float, Query(gt=0, le=3600)] = 5,
) -> dict[str, Any]:
    """For Traefik's HTTP provider. With a node id, replicas that leave wait for it: it must poll that often."""
    if node is None:
        return traefik_document(_current(parts).table)
    current = await parts.whole_tables.poll(SeenProxy(node, "traefik", 3 * poll_seconds))
    return traefik_document((current or _current(parts)).table)


@forms.get("/prometheus/targets")
async def targets(parts: TheParts) -> list[dict[str, Any]]:
    """For Prometheus' `http_sd_configs`."""
    return prometheus_targets(_current(parts).table)


@forms.get("/v1/traffic")
async def table(parts: TheParts) -> dict[str, Any]:
    """The table for people, with the proxies that poll this server: whether each knows it, and what it knows."""
    current = _current(parts)
    return {
        "version": current.resources.version,
        "age_seconds": round(parts.publisher.age, 3),
        "services": [asdict(service) for service in current.table.services],
        "left_out": current.table.faults,
        "proxies": [_proxy(parts, node, current) for node in sorted(proxy.node_id for proxy in parts.recorder.live)],
    }


def _proxy(parts: Parts, node: str, current: Published) -> dict[str, Any]:
    known = parts.recorder.watermark(node)
    version = known.version if known else None
    return {"node": node, "version": version, "is_current": version == current.resources.version}


def _current(parts: Parts) -> Published:
    if parts.publisher.current is None:
        raise HTTPException(503, "The table has not been read from Postgres yet; ask again in a moment.")
    return parts.publisher.current
