"""The pages and their forms: the list, one deployment, log in, log out, and the buttons."""

import json
import secrets
from collections.abc import Mapping
from functools import partial
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from api.people.auth import Access, secret_of_session
from api.people.doors import BUTTONS, DOORS
from api.people.page.files import HEADERS, LIVE, file, filled, page
from api.people.page.forms import body_of, fields_of_stranger, form_fields, form_token, with_lines_of
from api.people.paths import DEPLOYMENT, named_in
from api.people.problems import NoSuchResourceError, TooManyRequestsError
from api.people.reads.read_table import BY_PATH
from api.people.resources.command_resources import PLANS, WRITES, carry_out
from api.people.resources.plan_requests import Foresight
from api.people.resources.routing import Methods, answer_read
from db.access_tokens import SESSION_LASTS, begin_session, end_session, end_sessions, session_id, sessions_of
from db.connection.transactions import in_transaction
from domain.commands.base import Command
from domain.installation.tokens import SECRET_BYTES, NoTokenError, Token
from domain.traffic.entrances import PAGE_HOST, SESSION_COOKIE

_LOGS = BY_PATH[f"{DEPLOYMENT}/logs"]
_LINES = 200
"""The number of last lines that are shown when a log is opened."""
_NOT_KEPT = (
    "your browser keeps no session of this address: open the page by https, or on its own machine "
    f"as http://{PAGE_HOST}:{{port}}; 'ssh -L {{port}}:127.0.0.1:{{port}} MACHINE' makes yours that machine"
)


class Site:
    """The pages that browsers ask for."""

    def __init__(self, access: Access, foresight: Foresight) -> None:
        self._access = access
        self._foresight = foresight

    def routes(self) -> list[Route]:
        """The routes of the page."""
        return [
            *(Route(path, Methods({"GET": partial(self._live, name)})) for name, (path, _) in LIVE.items()),
            Route("/deployments/{deployment}/logs", Methods({"POST": self._logs})),
            *(
                Route(f"{place}/{{button}}{asks}", Methods({"POST": answer}))
                for place in ("/fleet", "/deployments/{deployment}")
                for asks, answer in (("", self._press), ("/plan", self._plan))
            ),
            Route("/login", Methods({"GET": self._ask_for_token, "POST": self._log_in})),
            Route("/login/kept", Methods({"GET": self._see_whether_kept})),
            Route("/logout", Methods({"POST": self._log_out})),
            Route("/sessions", Methods({"GET": self._sessions, "POST": self._end_sessions})),
            Route("/static/{file:path}", Methods({"GET": file})),
        ]

    async def _live(self, name: str, request: Request) -> Response:
        """One of the live pages, for a session."""
        secret = secret_of_session(request)
        if not secret and request.headers.get("sec-fetch-site") == "cross-site":
            return page("again")  # a browser keeps a strict cookie back where a link on another site was followed
        try:
            token = await self._access.of_session(request)
        except NoTokenError:
            return RedirectResponse(_login(request.url.path), 303, HEADERS)
        deployment = str(request.path_params.get("deployment", ""))
        return page(
            name,
            deployment=deployment,
            path=quote(deployment, ""),
            rollout=str(request.path_params.get("rollout", "")),
            role=token.role,
            hosts="" if token.is_for_all else "hidden",
            logs="shown" if token.may(_LOGS.role) else "",
            token=token.name,
            form_token=form_token(secret),
        )

    async def _press(self, request: Request) -> Response:
        """A button: a command of this session."""
        token, form, command = await self._form(request)
        write = next(write for write in WRITES if write.command is command)
        headers = {"idempotency-key": form["request_id"]} if form.get("request_id") else {}
        with with_lines_of(form):
            path, body = await run_in_threadpool(_said, command, request, form)
            done = await run_in_threadpool(carry_out, write, token, path, headers, body)
        return JSONResponse(done["result"], headers={**HEADERS, "cache-control": "no-store"})

    async def _plan(self, request: Request) -> Response:
        """Show what a button would do."""
        token, form, command = await self._form(request)
        forecast = next((forecast for forecast in PLANS if forecast.command is command), None)
        if forecast is None:
            raise NoSuchResourceError(f"{request.path_params['button']} is not planned")
        with with_lines_of(form):
            path, body = await run_in_threadpool(_said, command, request, form)
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

    async def _ask_for_token(self, request: Request) -> Response:
        return page("login", then=_path(request.query_params.get("then", "/")), wrong="")

    async def _log_in(self, request: Request) -> Response:
        """Begin a session. The browser keeps its secret and not the token, so a stolen cookie is no bearer's token."""
        fields = await fields_of_stranger(request)
        secret, then = fields.get("token", "").strip(), _path(fields.get("then", "/"))
        try:
            token = await self._access.token_of_secret(request, secret)
        except (NoTokenError, TooManyRequestsError) as error:
            wrong = error.message if secret else "paste a token; 'rollway token create me --role operator' makes one"
            return page("login", 401, then=then, wrong=wrong)
        session, engine = secrets.token_urlsafe(SECRET_BYTES), self._access.engine
        await run_in_threadpool(in_transaction, engine, lambda connection: begin_session(connection, session, token))
        self._access.keep(session, token)
        answer = RedirectResponse(f"/login/kept?then={quote(then)}", 303, HEADERS)
        lasts = int(SESSION_LASTS.total_seconds())
        answer.set_cookie(SESSION_COOKIE, session, lasts, httponly=True, samesite="strict", secure=True)
        return answer

    async def _see_whether_kept(self, request: Request) -> Response:
        """Go on, or say why the browser shows no session: else its user would just be asked for the token again."""
        then = _path(request.query_params.get("then", "/"))
        try:
            await self._access.of_session(request)
        except NoTokenError:
            return page("login", 401, then=then, wrong=_NOT_KEPT.format(port=request.url.port or 80))
        return RedirectResponse(then, 303, HEADERS)

    async def _sessions(self, request: Request) -> Response:
        """Show where the page is logged in with this token."""
        secret = secret_of_session(request)
        try:
            token = await self._access.of_session(request)
        except NoTokenError:
            return RedirectResponse(_login(request.url.path), 303, HEADERS)
        engine, this = self._access.engine, session_id(secret)
        found = await run_in_threadpool(in_transaction, engine, lambda connection: sessions_of(connection, token.name))
        rows = "".join(
            filled(
                "session",
                id=each.id,
                began=f"{each.began_at:%Y-%m-%d %H:%M}",
                ends=f"{each.ends_at:%Y-%m-%d %H:%M} UTC",
                action="Log out this session" if each.id == this else "Log out",
            )
            for each in found
        )
        return page("sessions", rows=rows, token=token.name, form_token=form_token(secret))

    async def _end_sessions(self, request: Request) -> Response:
        """End the session of the pressed button, or all sessions of this token."""
        token = await self._access.of_session(request)
        form = await form_fields(request, secret_of_session(request))
        engine, chosen = self._access.engine, form.get("session", "").strip()
        if not chosen and not form.get("everywhere"):
            return RedirectResponse("/sessions", 303, HEADERS)
        await run_in_threadpool(in_transaction, engine, lambda connection: end_sessions(connection, token.name, chosen))
        return RedirectResponse("/sessions", 303, HEADERS)

    async def _log_out(self, request: Request) -> Response:
        session, engine = secret_of_session(request), self._access.engine
        await form_fields(request, session)
        await run_in_threadpool(in_transaction, engine, lambda connection: end_session(connection, session))
        answer = RedirectResponse("/login", 303, HEADERS)
        answer.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict", secure=True)
        return answer


def _said(command: type[Command], request: Request, form: Mapping[str, str]) -> tuple[dict[str, str], bytes]:
    """The values of the path, and the body, as the API takes them."""
    body = body_of(command, form)
    path = {name: request.path_params.get(name) or body.pop(name, "") for name in named_in(DOORS[command].path)}
    return path, json.dumps(body).encode()


def _path(then: str) -> str:
    """Return where to go after logging in: a page of this server."""
    is_ours = then.startswith("/") and not then.startswith(("//", "/\\")) and then.isprintable()
    return then if is_ours else "/"


def _login(path: str) -> str:
    """The form, which leads back to that path."""
    return "/login" if path == "/" else f"/login?then={quote(path)}"
