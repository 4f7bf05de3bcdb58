"""Serves the files of this folder: the templates of the pages, and what browsers load."""

import hashlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from api.people.problems import MethodNotAllowedError
from api.people.resources.routing import Methods
from domain.text.errors import RollwayError

_HERE = Path(__file__).parent
_RELOAD = (
    "again = setTimeout(() => location.reload(), "
    "performance.getEntriesByType('navigation')[0]?.type === 'reload' ? 60000 : 10000)"
)
"""In the HTML of each live page: it loads itself again when a script of it has not come, and would never begin.

A page that has been loaded again waits for a minute, so that a slow line gets all scripts.
"""
_RELOAD_HASH = b64encode(hashlib.sha256(_RELOAD.encode()).digest()).decode()
_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_POLICY = (
    f"default-src 'none'; script-src 'self' 'sha256-{_RELOAD_HASH}'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": _POLICY,
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Every answer of the page has them: no script, style or picture but those of this server and that line; no frame."""


@dataclass(frozen=True, slots=True)
class Served:
    """A file that browsers load, read once."""

    content: bytes
    media_type: str
    etag: str


def _served(path: Path) -> Served:
    content = path.read_bytes()
    return Served(content, _TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:20]}"')


_STATIC = _HERE / "static"
FILES: Mapping[str, Served] = {
    path.relative_to(_STATIC).as_posix(): _served(path) for path in sorted(_STATIC.rglob("*.*"))
}
LIVE: Mapping[str, tuple[str, str]] = {
    "fleet": ("/", "Deployments"),
    "hosts": ("/hosts", "Hosts"),
    "activity": ("/activity", "Activity"),
    "deployment": ("/deployments/{deployment}", "$deployment"),
    "rollout": ("/deployments/{deployment}/rollouts/{rollout}", "Rollout of $deployment"),
}
"""The pages that stand in the shell, with path and title: what differs is their content and their script."""
CARDS = {
    "login": "Log in",
    "missing": "Nothing is here",
    "refused": "Not here",
    "sessions": "Sessions of $token",
    "tokens": "Tokens",
}
"""The pages that are one card, by their titles."""


def _templates() -> Mapping[str, Template]:
    texts = {path.stem: path.read_text(encoding="utf-8") for path in _HERE.glob("*.html")}
    shell, card = Template(texts.pop("shell")), Template(texts.pop("card"))
    live = {
        name: shell.safe_substitute(page=name, title=title, content=texts[name], reload=_RELOAD)
        for name, (_, title) in LIVE.items()
    }
    forms = {name: card.substitute(title=title, content=texts[name]) for name, title in CARDS.items()}
    return {name: Template(text) for name, text in {**texts, **live, **forms}.items()}


_PAGES = _templates()


def page(name: str, status: int = 200, /, *, rows: str = "", **values: str) -> Response:
    """A page from its template, with its values made harmless. `rows`: HTML that `filled` has made."""
    return HTMLResponse(filled(name, rows=rows, **values), status, {**HEADERS, "cache-control": "no-store"})


def filled(name: str, /, *, rows: str = "", **values: str) -> str:
    """The HTML of a template, its values made harmless."""
    return _PAGES[name].substitute({key: escape(value) for key, value in values.items()}, rows=rows)


class PageMethods(Methods):
    """One path of the page. A GET of a path for forms is refused by a page that leads back, and not by JSON."""

    def refused(self, request: Request, error: RollwayError) -> Response:
        answer = super().refused(request, error)
        if request.method not in ("GET", "HEAD") or not is_for_people(request):
            return answer
        message, deployment = error.message, str(request.path_params.get("deployment", ""))
        if isinstance(error, MethodNotAllowedError):
            message = f"{request.url.path} is the address of a button: it is pressed on its page"
        names = {"path": quote(deployment, ""), "deployment": deployment, "back": "" if deployment else "hidden"}
        response = page("refused", answer.status_code, message=f"{message[:1].upper()}{message[1:]}.", **names)
        response.headers.update({name: value for name, value in answer.headers.items() if name in _KEPT})
        return response


_KEPT = ("allow", "retry-after", "www-authenticate")


def is_for_people(request: Request) -> bool:
    """Whether the request comes from an address bar or a link."""
    return "text/html" in request.headers.get("accept", "")


def instants(**times: datetime | None) -> dict[str, str]:
    """Each time as `<time>` has it, under its name with `_at`, and in words of UTC; "never" for none."""
    texts = {name: f"{at:%Y-%m-%d %H:%M} UTC" if at else "never" for name, at in times.items()}
    return {**texts, **{f"{name}_at": at.isoformat() if at else "" for name, at in times.items()}}


async def file(request: Request) -> Response:
    """A file, or that the browser has it already."""
    static_file = FILES.get(request.path_params["file"])
    if static_file is None:
        return Response(status_code=404, headers=dict(HEADERS))
    headers = {**HEADERS, "etag": static_file.etag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == static_file.etag:
        return Response(status_code=304, headers=headers)
    return Response(static_file.content, headers=headers, media_type=static_file.media_type)
