"""The pages and their forms: the list, one deployment, and the buttons."""

import json
from collections.abc import Mapping
from functools import partial
from urllib.parse import quote
from uuid import UUID

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from api.people.auth import Access, secret_of_session
from api.people.doors import BUTTONS, DOORS
from api.people.page.files import HEADERS, LIVE, PageMethods, file, is_for_people, page
from api.people.page.forms import body_of, form_fields, form_token, with_lines_of
from api.people.page.logins import Logins, to_login, tokens_hidden
from api.people.page.token_forms import TokenForms
from api.people.paths import DEPLOYMENT, named_in
from api.people.problems import MethodNotAllowedError, NoSuchResourceError
from api.people.reads.read_table import BY_PATH
from api.people.resources.command_resources import PLANS, WRITES, carry_out
from api.people.resources.plan_requests import Foresight
from api.people.resources.routing import answer_read
from db.connection.transactions import in_transaction
from db.views.rollout_views import is_rollout_of
from domain.commands.base import Command
from domain.installation.tokens import NoTokenError, Token
from domain.text.errors import RollwayError

_LOGS = BY_PATH[f"{DEPLOYMENT}/logs"]
_LINES = 200
"""The number of last lines that are shown when a log is opened."""


class Site:
    """The pages that browsers ask for."""

    def __init__(self, access: Access, foresight: Foresight) -> None:
        self._access = access
        self._foresight = foresight

    def routes(self) -> list[Route]:
        return [
            *(Route(path, PageMethods({"GET": partial(self._live, name)})) for name, (path, _) in LIVE.items()),
            Route("/deployments", PageMethods({"GET": _to_list})),
            Route("/deployments/{deployment}/logs", PageMethods({"POST": self._logs})),
            *(
                Route(f"{place}/{{button}}{asks}", ButtonMethods({"POST": answer}))
                for place in ("/fleet", "/deployments/{deployment}")
                for asks, answer in (("", self._press), ("/plan", self._plan))
            ),
            *Logins(self._access).routes(),
            *TokenForms(self._access).routes(),
            Route("/static/{file:path}", PageMethods({"GET": file})),
        ]

    async def _live(self, name: str, request: Request) -> Response:
        """One of the live pages, for a session."""
        secret = secret_of_session(request)
        if not secret and request.headers.get("sec-fetch-site") == "cross-site":
            return page("again")  # a browser keeps a strict cookie back where a link on another site was followed
        try:
            token = await self._access.of_session(request)
        except NoTokenError:
            return await to_login(self._access, request)
        deployment, rollout = (str(request.path_params.get(each, "")) for each in ("deployment", "rollout"))
        is_known = not rollout or (token.sees(deployment) and await self._has_rollout(deployment, rollout))
        return page(
            name,
            200 if is_known else 404,  # the page says why
            deployment=deployment,
            path=quote(deployment, ""),
            rollout=rollout,
            role=token.role,
            hosts="" if token.is_for_all else "hidden",
            tokens=tokens_hidden(token),
            logs="shown" if token.may(_LOGS.role) else "",
            token=token.name,
            form_token=form_token(secret),
        )

    async def _has_rollout(self, deployment: str, rollout: str) -> bool:
        try:
            rollout_id = UUID(rollout)
        except ValueError:
            return False
        engine = self._access.engine
        return await run_in_threadpool(in_transaction, engine, lambda it: is_rollout_of(it, deployment, rollout_id))

    async def _press(self, request: Request) -> Response:
        """A button: a command of this session."""
        token, form, command = await self._form(request)
        write = next(write for write in WRITES if write.command is command)
        headers = {"idempotency-key": form["request_id"]} if form.get("request_id") else {}
        with with_lines_of(form):
            path, body = await run_in_threadpool(_path_and_body, command, request, form)
            answer = await run_in_threadpool(carry_out, write, token, path, headers, body)
        return JSONResponse(answer["result"], headers={**HEADERS, "cache-control": "no-store"})

    async def _plan(self, request: Request) -> Response:
        """Show what a button would do."""
        token, form, command = await self._form(request)
        forecast = next((forecast for forecast in PLANS if forecast.command is command), None)
        if forecast is None:
            raise NoSuchResourceError(f"{request.path_params['button']} is not planned")
        with with_lines_of(form):
            path, body = await run_in_threadpool(_path_and_body, command, request, form)
            return await self._foresight.answer(forecast, request, token, path, body)

    async def _logs(self, request: Request) -> Response:
        """Show what a replica has printed: by a form, as hosts are asked, and a session alone makes nobody work."""
        token = await self._access.of_session(request)
        form = await form_fields(request, secret_of_session(request))
        place = {"route": form.get("route", ""), "place": form.get("place")}
        body = json.dumps({"lines": _LINES, "places": [place]}).encode()
        return await answer_read(self._access.engine, _LOGS, token, request, body)

    async def _form(self, request: Request) -> tuple[Token, Mapping[str, str], type[Command]]:
        """Return who presses which button, and what its dialog says."""
        token = await self._access.of_session(request)
        form = await form_fields(request, secret_of_session(request))
        button = request.path_params["button"]
        command = BUTTONS.get(button)
        if command is None or ("deployment" in request.path_params) is not (
            "deployment" in named_in(DOORS[command].path)
        ):
            raise NoSuchResourceError(f"no button is called {button} here")
        return token, form, command


class ButtonMethods(PageMethods):
    """The address of a button; one that no button has is the address of nothing."""

    def refused(self, request: Request, error: RollwayError) -> Response:
        is_known = request.path_params["button"] in BUTTONS
        if isinstance(error, MethodNotAllowedError) and not is_known and is_for_people(request):
            return page("missing", 404, path=request.url.path)
        return super().refused(request, error)


async def _to_list(_: Request) -> Response:
    return RedirectResponse("/", 303, HEADERS)


def _path_and_body(command: type[Command], request: Request, form: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
    """The values of the path, and the body, as the API takes them."""
    body = body_of(command, form)
    path = {name: request.path_params.get(name) or body.pop(name, "") for name in named_in(DOORS[command].path)}
    return path, json.dumps(body).encode()
