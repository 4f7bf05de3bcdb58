"""The app: its parts and routers, and what the server says of itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import structlog
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy import Engine

from api.bodies import BoundedBodies
from api.connections import most_proxies
from api.metrics import metrics
from api.proxies.envoy.discovery import Discovery, serve
from api.proxies.forms import forms
from api.proxies.parts import Parts, TheParts
from api.serving import end
from api.settings import ApiSettings
from domain.words.text import storable

_STALE_SECONDS = 5.0
"""It is read twice a second. Postgres may also be silent, without a fault for a while."""
_log = structlog.get_logger(__name__)
own = APIRouter()


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the app calls. `on_release`: in a thread, whenever every live proxy has let go of some replicas.

    `on_failure`: when some of what goes on beside the requests has ended: the process must end too, or it would go on
    serving what is true no more.
    """

    on_release: Callable[[], None]
    on_failure: Callable[[], None]


def make_app(engine: Engine, redis_url: str, where: ApiSettings, hooks: Hooks) -> FastAPI:
    """The app; while it serves, so does the discovery of Envoys on a port of its own."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        parts = app.state.parts = Parts.put_together(engine, redis_url, where.proxy_key, hooks.on_release)
        telling = serve(Discovery(parts.streams, parts.access), where.host, where.discovery_port, most_proxies())
        tasks = [asyncio.ensure_future(work) for work in (*parts.work, telling)]
        for task in tasks:
            task.add_done_callback(partial(_ended, parts, hooks.on_failure))
        yield
        parts.publisher.stop()
        await end(tasks)

    # no pages of the framework's own: who reaches the port need not learn what else it answers
    app = FastAPI(title="Rollway", lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(BoundedBodies)
    app.add_exception_handler(RequestValidationError, _refuse)
    for router in (own, metrics, forms):
        app.include_router(router)
    return app


def _ended(parts: Parts, on_failure: Callable[[], None], task: asyncio.Task[None]) -> None:
    if task.cancelled() or parts.publisher.stopping:
        return
    _log.critical("a background task ended, so this process ends", task=str(task.get_coro()), exc_info=task.exception())
    on_failure()


async def _refuse(_: Request, error: Exception) -> Response:
    """A sentence for the first fault, without the value: it may be one that no answer can hold."""
    assert isinstance(error, RequestValidationError)  # noqa: S101  (narrows the type)
    fault = error.errors()[0]
    field = ".".join(str(part) for part in fault["loc"][1:])
    sentence = f"{field}: {str(fault['msg']).removeprefix('Value error, ')}"
    return JSONResponse({"detail": storable(sentence.removeprefix(": "))}, 422)


@own.get("/healthz")
async def health(parts: TheParts, response: Response) -> dict[str, object]:
    """200 as soon as there is a table to serve, whatever is away now; what is away is named."""
    current, age, recorder = parts.publisher.current, parts.publisher.age, parts.recorder
    is_stale = parts.publisher.fault is not None or age > _STALE_SECONDS
    response.status_code = 200 if current else 503
    return {
        "status": "starting" if not current else "stale" if is_stale else "unwritten" if recorder.fault else "ok",
        "table_version": current.resources.version if current else None,
        "table_age_seconds": round(age, 3),
        "postgres": parts.publisher.fault or (f"silent for {age:.0f} s" if is_stale else "ok"),
        "redis": parts.notices.fault or "ok",
        "acknowledgements": recorder.fault or "ok",
        "failed_writes": recorder.failed_writes,
    }
