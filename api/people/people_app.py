"""The app for people: its settings, its resources, and its own health, metrics and API description."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import Field
from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from api.people.auth import Access, Rates, Work
from api.people.page.files import is_for_people, page
from api.people.page.site import Site
from api.people.problems import NoSuchResourceError, refusal
from api.people.resources.host_joins import HostJoins
from api.people.resources.openapi import openapi
from api.people.resources.plan_requests import Foresight
from api.people.resources.routing import Methods, routes
from api.people.streams.change_feed import ChangeReader
from api.people.streams.event_stream import Streams
from api.proxies.pubsub import Notices
from api.serving import TOO_LARGE, BoundedBodies, end
from db.connection.transactions import database_now, in_transaction
from domain.installation.settings import Settings
from domain.text.errors import TooLargeError
from runtime.machine.watchdog import stay_alive

PEOPLE_PORT = 7072


class PeopleSettings(Settings):
    """Every request shows a token, on this machine too."""

    host: str = Field("127.0.0.1", validation_alias="ROLLWAY_PEOPLE_HOST", description="an address of this machine")
    """The address to listen at; beyond 127.0.0.1 put TLS in front of it, since tokens travel in requests."""
    port: int = Field(
        PEOPLE_PORT, ge=1, le=65_535, validation_alias="ROLLWAY_PEOPLE_PORT", description="a port from 1 to 65535"
    )
    """The port to listen at."""
    rate: float = Field(
        50,
        gt=0,
        le=100_000,
        validation_alias="ROLLWAY_PEOPLE_RATE",
        description="a number of requests a second, more than 0 and up to 100000",
    )
    """Requests a second that one token may make for long; four times as many at once.

    At 50 its plans may take 10 s of the processor at once, and 0.25 s each second for long; other rates scale both.
    """


_AT_ONCE = 4


def make_app(engine: Engine, redis_url: str, rate: float) -> Starlette:
    """The app. `rate`: requests a second that one token may make for long."""
    access = Access(engine, Rates(rate, _AT_ONCE * rate), work=Work(Rates(rate / 200, rate / 5)))
    foresight = Foresight(access)
    reader = ChangeReader(engine)

    async def ready(_: Request) -> Response:
        now = await run_in_threadpool(in_transaction, engine, database_now)
        return JSONResponse({"status": "ok", "now": now.isoformat()})

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(access.observed.registry), media_type=CONTENT_TYPE_LATEST)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.changes = reader
        works = (reader.run(), Notices(redis_url, reader.read_soon).run(), stay_alive())
        tasks = [asyncio.ensure_future(work) for work in works]
        await foresight.thinkers.prepare()
        yield
        await end(tasks)
        await foresight.thinkers.end()

    return Starlette(
        routes=[
            *routes(engine, access, foresight),
            Route("/v1/events", Methods({"GET": Streams(access, reader).answer})),
            Route("/openapi.json", Methods({"GET": _description})),
            *HostJoins(access).routes(),
            *Site(access, foresight).routes(),
            Route("/livez", Methods({"GET": _live})),
            Route("/metrics", Methods({"GET": metrics})),
            Route("/readyz", Methods({"GET": ready})),
        ],
        middleware=[Middleware(BoundedBodies, refusal=refusal(TooLargeError(TOO_LARGE)))],
        exception_handlers={HTTPException: _no_such_resource},
        lifespan=lifespan,
    )


async def _description(_: Request) -> Response:
    return JSONResponse(openapi())


async def _live(_: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _no_such_resource(request: Request, _: Exception) -> Response:
    if is_for_people(request):
        return page("missing", 404, path=request.url.path)
    return refusal(NoSuchResourceError(f"nothing is at {request.url.path}; /openapi.json lists what there is"))
