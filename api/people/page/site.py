"""The pages and their forms: the list, one deployment, log in, log out, and the buttons."""

import json
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from api.people.asking.access import Access
from api.people.page.files import HEADERS, file, page
from api.people.page.forms import fields_of, fields_of_stranger, form_token
from api.people.problems import NoSuchResourceError, TooManyRequestsError
from api.people.resources.answers import Methods
from api.people.resources.commands import carry_out
from api.people.resources.table import WRITES, Write
from db.connection.engine import in_transaction
from db.tokens import SESSION_LASTS, begin_session, end_session
from domain.installation.tokens import SECRET_BYTES, SESSION_COOKIE, NoTokenError
from domain.words.errors import InvalidInputError

BUTTONS: Mapping[str, Write] = {write.command.door.verb: write for write in WRITES if write.command.door.label}
"""By the last word of the path, as in `/deployments/web/pause`."""
_FIELDS = ("reason", "revision", "desired_replicas")


class Site:
    """What browsers ask for."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def routes(self) -> list[Route]:
        """The routes of the page."""
        return [
            Route("/", Methods({"GET": self._fleet})),
            Route("/deployments/{deployment}", Methods({"GET": self._deployment})),
            Route("/deployments/{deployment}/{button}", Methods({"POST": self._press})),
            Route("/login", Methods({"GET": self._ask_for_token, "POST": self._log_in})),
            Route("/logout", Methods({"POST": self._log_out})),
            Route("/static/{file}", Methods({"GET": file})),
        ]

    async def _fleet(self, request: Request) -> Response:
        return await self._live(request, "fleet")

    async def _deployment(self, request: Request) -> Response:
        return await self._live(request, "deployment")

    async def _live(self, request: Request, name: str) -> Response:
        """One of the two live pages, for who has logged in."""
        secret = request.cookies.get(SESSION_COOKIE, "")
        if not secret and request.headers.get("sec-fetch-site") == "cross-site":
            return page("again")  # a browser keeps a strict cookie back where a link on another site was followed
        try:
            token = await self._access.of_session(request)
        except NoTokenError:
            return RedirectResponse(_login(request.url.path), 303, HEADERS)
        deployment = str(request.path_params.get("deployment", ""))
        return page(
            name,
            title=deployment or "Deployments",
            deployment=deployment,
            role=token.role,
            token=token.name,
            form_token=form_token(secret),
        )

    async def _press(self, request: Request) -> Response:
        """A button of a deployment: a command, by who has logged in."""
        token = await self._access.of_session(request)
        fields = await fields_of(request, request.cookies.get(SESSION_COOKIE, ""))
        write = BUTTONS.get(request.path_params["button"])
        if write is None:
            raise NoSuchResourceError(f"no button is called {request.path_params['button']}")
        path = {"deployment": request.path_params["deployment"]}
        headers = {"idempotency-key": fields["request_id"]} if fields.get("request_id") else {}
        body = json.dumps(_body(fields)).encode()
        done = await run_in_threadpool(carry_out, write, token, path, headers, body)
        return JSONResponse(done["result"], headers={**HEADERS, "cache-control": "no-store"})

    async def _ask_for_token(self, request: Request) -> Response:
        return page("login", then=_path(request.query_params.get("then", "/")), wrong="")

    async def _log_in(self, request: Request) -> Response:
        """The browser keeps a session of its own, not the token: whoever gets hold of it holds no bearer's secret."""
        fields = await fields_of_stranger(request)
        secret, then = fields.get("token", "").strip(), _path(fields.get("then", "/"))
        try:
            token = await self._access.known(request, secret)
        except (NoTokenError, TooManyRequestsError) as error:
            wrong = error.message if secret else "paste a token; 'rollway token create me --role operator' makes one"
            return page("login", 401, then=then, wrong=wrong)
        session, engine = secrets.token_urlsafe(SECRET_BYTES), self._access.engine
        await run_in_threadpool(in_transaction, engine, lambda connection: begin_session(connection, session, token))
        answer = RedirectResponse(then, 303, HEADERS)
        lasts, is_secure = int(SESSION_LASTS.total_seconds()), request.url.scheme == "https"
        answer.set_cookie(SESSION_COOKIE, session, lasts, httponly=True, samesite="strict", secure=is_secure)
        return answer

    async def _log_out(self, request: Request) -> Response:
        session, engine = request.cookies.get(SESSION_COOKIE, ""), self._access.engine
        await fields_of(request, session)
        await run_in_threadpool(in_transaction, engine, lambda connection: end_session(connection, session))
        answer = RedirectResponse("/login", 303, HEADERS)
        answer.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")
        return answer


def _body(fields: Mapping[str, str]) -> dict[str, Any]:
    """What the command takes; a number that is none is refused by its name."""
    body: dict[str, Any] = {name: fields[name] for name in _FIELDS if fields.get(name)}
    if "desired_replicas" in body:
        try:
            body["desired_replicas"] = int(body["desired_replicas"])
        except ValueError:
            raise InvalidInputError("desired_replicas: must be a number", field="desired_replicas") from None
    return body


def _path(then: str) -> str:
    """Where to go after logging in: a page of this server."""
    is_ours = then.startswith("/") and not then.startswith(("//", "/\\")) and then.isprintable()
    return then if is_ours else "/"


def _login(path: str) -> str:
    """The form, which leads back to that path."""
    return "/login" if path == "/" else f"/login?then={quote(path)}"
