"""The app for proxies: its parts and routers, and its own health and metrics."""

import asyncio
import base64
import binascii
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import ValidationError
from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.proxies.components import Parts, parts_of
from api.proxies.envoy.discovery import Discovery, serve
from api.proxies.publisher import POSTGRES_ERRORS
from api.proxies.table_routes import FORMS
from api.proxy_settings import ApiSettings
from api.serving import BoundedBodies, end, most_proxies
from domain.text.storable import storable
from runtime.machine.watchdog import stay_alive

_STALE_SECONDS = 5.0
"""The table is read twice a second. Postgres may also be silent, without a fault for a while."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Hooks:
    """The app's callbacks. `on_release`: in a thread, whenever every live proxy has let go of some replicas.

    `on_failure`: when a background task has ended: the process must end too, or it would serve outdated tables.
    """

    on_release: Callable[[], None]
    on_failure: Callable[[], None]


def make_app(engine: Engine, redis_url: str, where: ApiSettings, hooks: Hooks) -> Starlette:
    """The app; while it serves, so does the discovery of Envoys on a port of its own."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        parts = app.state.parts = Parts.put_together(engine, redis_url, where, hooks.on_release)
        telling = serve(Discovery(parts.streams, parts.access), where.discovery, most_proxies())
        tasks = [asyncio.ensure_future(work) for work in (*parts.work, telling)]
        for task in tasks:
            task.add_done_callback(partial(_ended, parts, hooks.on_failure))
        alive = asyncio.ensure_future(stay_alive())
        yield
        parts.publisher.stop()
        await end([*tasks, alive])

    return Starlette(
        routes=[Route("/healthz", health), *METRICS, *FORMS],
        middleware=[Middleware(BoundedBodies)],
        exception_handlers={ValidationError: _refuse_values, HTTPException: _refuse},
        lifespan=lifespan,
    )


def _ended(parts: Parts, on_failure: Callable[[], None], task: asyncio.Task[None]) -> None:
    if task.cancelled() or parts.publisher.stopping:
        return
    _log.critical("a background task ended, so this process ends", task=str(task.get_coro()), exc_info=task.exception())
    on_failure()


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  (narrows the type)
    return JSONResponse({"detail": error.detail}, error.status_code, error.headers)


async def _refuse_values(_: Request, error: Exception) -> Response:
    """A sentence for the first fault, without the value, which an answer may be unable to hold."""
    assert isinstance(error, ValidationError)  # noqa: S101  (narrows the type)
    fault = error.errors()[0]
    field = ".".join(str(part) for part in fault["loc"])
    sentence = f"{field}: {str(fault['msg']).removeprefix('Value error, ')}"
    return JSONResponse({"detail": storable(sentence.removeprefix(": "))}, 422)


async def health(request: Request) -> Response:
    """200 as soon as there is a table to serve, even while a server is away; the answer names it."""
    parts = parts_of(request)
    current, age, recorder = parts.publisher.current, parts.publisher.age, parts.recorder
    is_stale = parts.publisher.fault is not None or age > _STALE_SECONDS
    report = {
        "status": "starting" if not current else "stale" if is_stale else "unwritten" if recorder.fault else "ok",
        "table_version": current.resources.version if current else None,
        "table_age_seconds": round(age, 3),
        "postgres": parts.publisher.fault or (f"silent for {age:.0f} s" if is_stale else "ok"),
        "redis": parts.notices.fault or "ok",
        "acknowledgements": recorder.fault or "ok",
        "failed_writes": recorder.failed_writes,
    }
    return JSONResponse(report, 200 if current else 503)


async def of_this_server(request: Request) -> Response:
    """Numbers of this process. They name no deployment, so they need no token."""
    parts = parts_of(request)
    parts.observed.table_age.set(parts.publisher.age)
    parts.observed.proxies_live.set(len(parts.recorder.presence.live))
    return Response(generate_latest(parts.observed.registry), media_type=CONTENT_TYPE_LATEST)


async def of_the_fleet(request: Request) -> Response:
    """The fleet's numbers by deployment and host, for a caller with a node id and its token.

    503 when Postgres cannot be read: no number is shown that may be out of date.
    """
    parts = parts_of(request)
    parts.access.check(*_credentials(request.headers.get("authorization", "")))
    try:
        return Response(await parts.fleet.text(), media_type=CONTENT_TYPE_LATEST)
    except POSTGRES_ERRORS as error:
        why = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise HTTPException(503, f"Postgres cannot be read: {why}") from error


def _credentials(authorization: str) -> tuple[str, str]:
    """Name and password of HTTP Basic; empty without them."""
    scheme, _, secret = authorization.partition(" ")
    try:
        name, _, password = base64.b64decode(secret, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return "", ""
    return (name, password) if scheme.lower() == "basic" else ("", "")


METRICS = [Route("/metrics", of_this_server), Route("/metrics/fleet", of_the_fleet)]
