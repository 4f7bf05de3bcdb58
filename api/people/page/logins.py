"""Logs browsers in and out: the form for a token, its session, and the list of a token's sessions."""

import re
import secrets
from functools import partial
from urllib.parse import quote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from api.people.auth import Access, is_of_this_site, secret_of_session
from api.people.page.files import HEADERS, PageMethods, filled, instants, page
from api.people.page.forms import fields_of_stranger, form_fields, form_token
from api.people.problems import TooManyRequestsError
from api.people.resources.routing import Methods
from db.access_tokens import (
    SESSION_LASTS,
    begin_session,
    end_session,
    end_sessions,
    make_login_link,
    session_id,
    sessions_of,
    why_over,
)
from db.connection.transactions import in_transaction
from domain.installation.tokens import SECRET_BYTES, NoTokenError, Role, Session, SessionEnd, Token, login_path
from domain.text.storable import storable
from domain.traffic.entrances import PAGE_HOST, SESSION_COOKIE

_NOT_KEPT = (
    "your browser keeps no session of this address: open the page by https, or on its own machine "
    f"as http://{PAGE_HOST}:{{port}}; 'ssh -L {{port}}:127.0.0.1:{{port}} MACHINE' makes yours that machine"
)
_NOTHING = "paste a token; 'rollway token create me --role operator' makes one"
_BROWSERS = {"Edg": "Edge", "OPR": "Opera", "Firefox": "Firefox", "Chrome": "Chrome", "Safari": "Safari"}
"""Browsers by the word in their header: the first match counts, since most headers name other browsers too."""
_SYSTEMS = {
    "Android": "Android",
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Windows": "Windows",
    "Mac OS X": "macOS",
    "Linux": "Linux",
}
_LONGEST_NAME = 40


class Logins:
    """The routes by which a session begins and ends."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def routes(self) -> list[Route]:
        return [
            Route("/login", PageMethods({"GET": self._ask_for_token, "POST": self._log_in})),
            Route("/v1/login-links", Methods({"POST": self._make_link})),
            Route("/login/kept", PageMethods({"GET": self._see_whether_kept})),
            Route("/logout", PageMethods({"POST": self._log_out})),
            Route("/sessions", PageMethods({"GET": self._sessions, "POST": self._end_sessions})),
        ]

    async def _ask_for_token(self, request: Request) -> Response:
        why = request.query_params.get("why")
        wrong = SessionEnd(why).sentence if why in list(SessionEnd) else ""
        comes_from_here = "yes" if is_of_this_site(request) else ""
        return page("login", then=_path(request.query_params.get("then", "/")), wrong=wrong, obeys_link=comes_from_here)

    async def _log_in(self, request: Request) -> Response:
        """Begin a session with the token of the form, or with that of the link."""
        fields = await fields_of_stranger(request)
        secret, then = fields.get("token", "").strip(), _path(fields.get("then", "/"))
        link = fields.get("link", "")
        try:
            if link:
                token = await self._access.of_login_link(request, link)
            else:
                token = await self._access.token_of_secret(request, secret)
        except (NoTokenError, TooManyRequestsError) as error:
            wrong = error.message if secret or link else _NOTHING
            return page("login", 401, then=then, wrong=wrong, obeys_link="")
        return await self._begin_session(request, token, then)

    async def _make_link(self, request: Request) -> Response:
        """Make a link for the token of the request. Its secret is in the fragment, which no log contains."""
        token, secret = await self._access.token(request), secrets.token_urlsafe(SECRET_BYTES)
        make = partial(make_login_link, token=token.name, secret=secret)
        ends_at = await run_in_threadpool(in_transaction, self._access.engine, make)
        link = {"path": login_path(secret), "ends_at": ends_at.isoformat()}
        return JSONResponse(link, 201, {"cache-control": "no-store"})

    async def _begin_session(self, request: Request, token: Token, then: str) -> Response:
        """Begin a session. The browser keeps its secret and not the token, so a stolen cookie is no bearer's token."""
        session, engine = secrets.token_urlsafe(SECRET_BYTES), self._access.engine
        address = request.client.host if request.client else ""
        browser = browser_of(request.headers.get("user-agent", ""))
        begin = partial(begin_session, secret=session, token=token, address=address, browser=browser)
        await run_in_threadpool(in_transaction, engine, begin)
        self._access.keep(session, token)
        answer = RedirectResponse(f"/login/kept?then={quote(then)}", 303, HEADERS)
        lasts = int(SESSION_LASTS.total_seconds())
        answer.set_cookie(SESSION_COOKIE, session, lasts, httponly=True, samesite="strict", secure=True)
        return answer

    async def _see_whether_kept(self, request: Request) -> Response:
        """Continue, or say why the browser has no session; otherwise its user would only see the form again."""
        then = _path(request.query_params.get("then", "/"))
        try:
            await self._access.of_session(request)
        except NoTokenError:
            return page("login", 401, then=then, wrong=_NOT_KEPT.format(port=request.url.port or 80), obeys_link="")
        return RedirectResponse(then, 303, HEADERS)

    async def _sessions(self, request: Request) -> Response:
        """Show where the page is logged in with this token."""
        secret = secret_of_session(request)
        try:
            token = await self._access.of_session(request)
        except NoTokenError:
            return await to_login(self._access, request)
        engine, this = self._access.engine, session_id(secret)
        sessions = await run_in_threadpool(
            in_transaction, engine, lambda connection: sessions_of(connection, token.name)
        )
        rows = "".join(_row(each, is_this=each.id == this) for each in sessions)
        return page("sessions", rows=rows, token=token.name, tokens=tokens_hidden(token), form_token=form_token(secret))

    async def _end_sessions(self, request: Request) -> Response:
        """End the session of the pressed button, or all sessions of this token."""
        token = await self._access.of_session(request)
        form = await form_fields(request, secret_of_session(request))
        engine, session = self._access.engine, form.get("session", "").strip()
        if session or form.get("everywhere"):
            end = partial(end_sessions, token=token.name, actor=token.name, session_id=session)
            await run_in_threadpool(in_transaction, engine, end)
        return RedirectResponse("/sessions", 303, HEADERS)

    async def _log_out(self, request: Request) -> Response:
        session, engine = secret_of_session(request), self._access.engine
        await form_fields(request, session)
        await run_in_threadpool(in_transaction, engine, lambda connection: end_session(connection, session))
        answer = RedirectResponse("/login", 303, HEADERS)
        answer.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict", secure=True)
        return answer


async def to_login(access: Access, request: Request) -> Response:
    """The redirect to the form, which leads back to this path and says why a session is over."""
    secret, then = secret_of_session(request), request.url.path
    then += f"?{request.url.query}" if request.url.query else ""
    find = partial(why_over, secret=secret)
    why = await run_in_threadpool(in_transaction, access.engine, find) if secret else None
    asks = {**({"then": then} if then != "/" else {}), **({"why": why.value} if why else {})}
    return RedirectResponse(f"/login?{urlencode(asks, safe='/')}" if asks else "/login", 303, HEADERS)


def tokens_hidden(token: Token) -> str:
    """The attribute that hides the link to the page of tokens from roles without it."""
    return "" if token.is_for_all and token.may(Role.ADMIN) else "hidden"


def browser_of(header: str) -> str:
    """The browser in words, such as Firefox on Linux; of other programs the first word of their header."""
    name = next((name for word, name in _BROWSERS.items() if f"{word}/" in header), "")
    if not name:
        return storable(re.split(r"[/ ]", header)[0])[:_LONGEST_NAME]
    system = next((system for word, system in _SYSTEMS.items() if word in header), "")
    return f"{name} on {system}" if system else name


def _row(session: Session, *, is_this: bool) -> str:
    return filled(
        "session",
        id=session.id,
        place=", ".join(filter(None, (session.address, session.browser))) or "from somewhere unknown",
        this="this session" if is_this else "",
        **instants(began=session.began_at, used=session.last_used_at or session.began_at, ends=session.ends_at),
        action="Log out this session" if is_this else "Log out",
    )


def _path(then: str) -> str:
    """The page of this server to go to after logging in."""
    is_ours = then.startswith("/") and not then.startswith(("//", "/\\")) and then.isprintable()
    return then if is_ours else "/"
