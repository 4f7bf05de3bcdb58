"""The HTTP server that proxies poll."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from uuid import UUID

from fastapi import APIRouter, FastAPI, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field
from sqlalchemy import Engine

from api.forms import forms
from api.parts import Parts, TheParts
from traffic.resources import ResourceKind, Subscription

pages = APIRouter()


class _Node(BaseModel):
    id: str = Field(min_length=1, max_length=200)


class DiscoveryRequest(BaseModel):
    """Envoy's, as far as it matters here."""

    node: _Node
    version_info: str = Field(default="", max_length=100)
    resource_names: list[str] = Field(default_factory=list, max_length=1)


def make_app(engine: Engine, redis_url: str, on_release: Callable[[frozenset[UUID]], None]) -> FastAPI:
    """The app. `on_release` is called in a thread with the deployments of replicas that every live proxy let go."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        parts = app.state.parts = Parts.put_together(engine, redis_url, on_release)
        work = [asyncio.ensure_future(one) for one in parts.work]
        yield
        parts.publisher.stop()
        for one in work:
            one.cancel()
            with suppress(asyncio.CancelledError):
                await one

    app = FastAPI(title="Rollway", lifespan=lifespan)
    app.include_router(pages)
    app.include_router(forms)
    return app


@pages.post("/v3/discovery:{kind}")
async def discover(kind: ResourceKind, asked: DiscoveryRequest, request: Request, parts: TheParts) -> Response:
    """One poll of an Envoy's, held until there is something else for it; 304 when there is not."""
    name = asked.resource_names[0] if asked.resource_names and kind is not ResourceKind.CLUSTERS else ""
    gone = asyncio.ensure_future(request.receive())
    try:
        found = await parts.polls.poll(asked.node.id, Subscription(kind, name), asked.version_info, gone)
    finally:
        gone.cancel()
    return Response(status_code=304) if found is None else Response(found.answer, media_type="application/json")


@pages.get("/healthz")
async def health(parts: TheParts, response: Response) -> dict[str, object]:
    """200 as soon as there is a table to serve, whatever is away now; what is away is named."""
    current, fault = parts.publisher.current, parts.publisher.fault
    response.status_code = 200 if current else 503
    return {
        "status": "starting" if not current else "stale" if fault else "ok",
        "table_version": current.resources.version if current else None,
        "table_age_seconds": round(parts.publisher.age, 3),
        "postgres": fault or "ok",
        "redis": parts.notices.fault or "ok",
    }


@pages.get("/metrics")
async def metrics(parts: TheParts) -> Response:
    """For Prometheus."""
    parts.observed.table_age.set(parts.publisher.age)
    parts.observed.proxies_live.set(len(parts.recorder.live))
    return Response(generate_latest(parts.observed.registry), media_type=CONTENT_TYPE_LATEST)
