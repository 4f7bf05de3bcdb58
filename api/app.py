"""The app: its parts and routers, and what the server says of itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from fastapi import APIRouter, FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from sqlalchemy import Engine

from api.proxies.discovery import discovery
from api.proxies.forms import forms
from api.proxies.parts import Parts, TheParts

own = APIRouter()
STALE_SECONDS = 5.0
"""It is read twice a second. Postgres may also be silent, without a fault for a while."""


def make_app(engine: Engine, redis_url: str, on_release: Callable[[], None]) -> FastAPI:
    """The app. `on_release` is called in a thread whenever every live proxy has let go of some replicas."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        parts = app.state.parts = Parts.put_together(engine, redis_url, on_release)
        tasks = [asyncio.ensure_future(work) for work in parts.work]
        yield
        parts.publisher.stop()
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    app = FastAPI(title="Rollway", lifespan=lifespan)
    for router in (own, discovery, forms):
        app.include_router(router)
    return app


@own.get("/healthz")
async def health(parts: TheParts, response: Response) -> dict[str, object]:
    """200 as soon as there is a table to serve, whatever is away now; what is away is named."""
    current, fault = parts.publisher.current, parts.publisher.fault
    response.status_code = 200 if current else 503
    return {
        "status": "starting" if not current else "stale" if fault or parts.publisher.age > STALE_SECONDS else "ok",
        "table_version": current.resources.version if current else None,
        "table_age_seconds": round(parts.publisher.age, 3),
        "postgres": fault or "ok",
        "redis": parts.notices.fault or "ok",
    }


@own.get("/metrics")
async def metrics(parts: TheParts) -> Response:
    """For Prometheus."""
    parts.observed.table_age.set(parts.publisher.age)
    parts.observed.proxies_live.set(len(parts.recorder.live))
    return Response(generate_latest(parts.observed.registry), media_type=CONTENT_TYPE_LATEST)
