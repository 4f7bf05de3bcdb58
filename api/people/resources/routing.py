"""Routes of the resources: for each method the role, the answer, and the refusal."""

from asyncio import get_running_loop
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from operator import attrgetter
from typing import Any

import structlog
from psycopg import Connection
from sqlalchemy import Engine
from sqlalchemy.exc import TimeoutError as NoConnectionError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from api.people.auth import Access, AtOnce, names_withheld
from api.people.doors import DOORS
from api.people.problems import InternalError, MethodNotAllowedError, refusal
from api.people.reads.read_table import ON_THE_PAGE, READS, HttpResource, Read
from api.people.requests import Parameters, ReadRequest, parameters_of
from api.people.resources.command_resources import PLANS, WRITES, Forecast, Write, carry_out, fields_of
from api.people.resources.plan_requests import Foresight
from db.connection.transactions import in_transaction
from db.unreachable import AWAY
from db.views.documents import begin_reading, plain
from domain.installation.tokens import Token
from domain.text.errors import InvalidInputError, RollwayError, UnavailableError
from domain.text.storable import unstorable

Answer = Callable[[Request], Awaitable[Response]]
REPLAYED = "idempotency-replayed"
"""The header of a repeated answer."""
_WAITING = ThreadPoolExecutor(8, "waits-for-hosts")
"""Threads for questions to hosts: while hosts are silent, everything else is answered."""
_OF_A_TOKEN = AtOnce(2)
"""The most questions to hosts of one token, so that others have threads left."""
_PRIVATE = {"cache-control": "no-store"}
_log = structlog.get_logger(__name__)


class Methods:
    """One path: an answer for each method. ASGI, so that Starlette leaves the methods to us, with `Allow` in full."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self._answers = {**answers, **({"HEAD": answers["GET"]} if "GET" in answers else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        await (await self._answer(request))(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._answers.get(request.method, self._refuse)(request)
        except RollwayError as error:
            return self.refused(request, error)
        except (*AWAY, NoConnectionError) as error:
            _log.warning("Postgres did not answer", error=str(error).partition("\n")[0])
            message = "PostgreSQL did not answer; ask again, and with the same Idempotency-Key nothing is done twice"
            return refusal(UnavailableError(message))
        except Exception as error:  # noqa: BLE001  (whatever it is, the client is told, and the log says where)
            _log.exception("a request failed", method=request.method, path=request.scope.get("path"))
            return refusal(
                InternalError(f"this is a fault of Rollway's own, {type(error).__name__}; its log says more")
            )

    def refused(self, request: Request, error: RollwayError) -> Response:
        """The answer to a request that is refused; for whom it is made says `request`."""
        del request
        return refusal(error)

    async def _refuse(self, request: Request) -> Response:
        allowed = ", ".join(sorted(self._answers))
        raise MethodNotAllowedError(f"{request.method} is not for this path; {allowed} are", allow=allowed)


def routes(engine: Engine, access: Access, foresight: Foresight) -> list[Route]:
    """The routes of the table, one for each path."""

    def answer(resource: HttpResource) -> Answer:
        match resource:
            case Write():
                return _writing(resource, access)
            case Forecast():
                return _thinking(resource, access, foresight)
            case Read():
                return _reading(resource, engine, access)
        raise TypeError(resource)

    resources: Sequence[HttpResource] = sorted((*READS, *PLANS, *WRITES), key=attrgetter("path"))
    return [
        Route(path, Methods({resource.method: answer(resource) for resource in group}))
        for path, group in groupby(resources, key=attrgetter("path"))
    ]


def _writing(write: Write, access: Access) -> Answer:
    async def answer(request: Request) -> Response:
        token, body = await access.token(request), await request.body()
        result = await run_in_threadpool(carry_out, write, token, request.path_params, request.headers, body)
        replayed = {REPLAYED: "true"} if result["repeated"] else {}
        return JSONResponse(
            result["result"], DOORS[write.command].status, {**_PRIVATE, **_etag(result["result"]), **replayed}
        )

    return answer


def _reading(entry: Read, engine: Engine, access: Access) -> Answer:
    who_asks = access.on_page if entry.path in ON_THE_PAGE else access.token

    async def answer(request: Request) -> Response:
        token, body = await who_asks(request), await request.body()
        return await answer_read(engine, entry, token, request, body if entry.method == "POST" else None)

    return answer


async def answer_read(engine: Engine, entry: Read, token: Token, request: Request, body: bytes | None) -> Response:
    """Answer a read for the holder of the token. `body`: of a POST. Raises its refusals, and TooManyRequestsError."""
    read_request = allowed(entry, token, request, body)
    if not entry.afterwards:
        answer = await run_in_threadpool(look, engine, entry, read_request)
    else:
        who = f"the token {token.name}"
        with _OF_A_TOKEN.place(who, f"{who} waits for hosts {_OF_A_TOKEN.most} times already"):
            answer = await run_in_threadpool(look, engine, entry, read_request)
            answer = plain(await get_running_loop().run_in_executor(_WAITING, entry.finish, read_request, answer))
    return JSONResponse(answer, headers={**_PRIVATE, **(_etag(answer) if entry.has_etag else {})})


def _thinking(forecast: Forecast, access: Access, foresight: Foresight) -> Answer:
    async def answer(request: Request) -> Response:
        token, body = await access.token(request), await request.body()
        return await foresight.answer(forecast, request, token, request.path_params, body)

    return answer


def allowed(entry: Read, token: Token, request: Request, body: bytes | None) -> ReadRequest[Parameters]:
    """The parameters of the read. `body`: of a POST. Raises NotAllowedError and InvalidInputError."""
    token.refuse_below(entry.role)
    path = dict(request.path_params)
    if entry.is_of_fleet or "deployment" in path:
        token.refuse_others(path.get("deployment"))
    if fault := unstorable(path):
        raise InvalidInputError(": ".join(fault), field=fault[0])
    values = fields_of(body, path) if body is not None else request.query_params
    return ReadRequest(token, path, parameters_of(entry.parameters, values))


def look(engine: Engine, entry: Read, read_request: ReadRequest[Parameters]) -> Any:  # noqa: ANN401  # JSON is any of these
    """Read from Postgres, as JSON."""

    def find(connection: Connection) -> Any:  # noqa: ANN401  (as above)
        begin_reading(connection)
        return entry.find(connection, read_request)

    with names_withheld(read_request.token):
        answer = in_transaction(engine, find)
    return answer if entry.afterwards else plain(answer)


def _etag(document: Mapping[str, Any]) -> dict[str, str]:
    return {"etag": f'"{document["version"]}"'} if "version" in document else {}
