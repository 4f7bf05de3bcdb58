"""The pages and their forms: the list, one deployment, log in, log out, and the buttons."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from api.people.asking.access import COOKIE, Access
from api.people.page.files import HEADERS, file, page
from api.people.page.forms import fields_of, fields_of_stranger, form_token
from api.people.problems import NoSuchResourceError, TooManyRequestsError
from api.people.resources.answers import Methods
from api.people.resources.commands import carry_out
from api.people.resources.table import WRITES, Write
from domain.installation.tokens import NoTokenError, Token
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
        secret = request.cookies.get(COOKIE, "")
        if not secret and request.headers.get("sec-fetch-site") == "cross-site":
            return page("again")  # a browser keeps a strict cookie back where a link on another site was followed
        try:
            token = await self._token(request)
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
        token = await self._token(request)
        fields = await fields_of(request, request.cookies.get(COOKIE, ""))
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
        """The cookie is the token: no script can read it, and no other site makes a browser send it."""
        fields = await fields_of_stranger(request)
        secret, then = fields.get("token", "").strip(), _path(fields.get("then", "/"))
        address = request.client.host if request.client else ""
        try:
            await self._access.known(secret, address)
        except (NoTokenError, TooManyRequestsError) as error:
            wrong = error.message if secret else "paste a token; 'rollway token create me --role operator' makes one"
            return page("login", 401, then=then, wrong=wrong)
        answer = RedirectResponse(then, 303, HEADERS)
        is_secure = request.url.scheme == "https"
        answer.set_cookie(COOKIE, secret, httponly=True, samesite="strict", secure=is_secure)
        return answer

    async def _log_out(self, request: Request) -> Response:
        await fields_of(request, request.cookies.get(COOKIE, ""))
        answer = RedirectResponse("/login", 303, HEADERS)
        answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return answer

    async def _token(self, request: Request) -> Token:
        """The token of who has logged in. Raises NoTokenError."""
        address = request.client.host if request.client else ""
        return await self._access.known(request.cookies.get(COOKIE, ""), address)


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
