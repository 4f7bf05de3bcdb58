"""A service behind Envoy that means harm to who is logged in to the page, in one browser, on one host name."""

import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from playwright.sync_api import BrowserContext

from domain.installation.tokens import Role
from domain.traffic.entrances import PAGE_HOST, SESSION_COOKIE
from tests.support.people.browser import MISSING, browser, chromium, log_in
from tests.support.people.people_api import People
from tests.support.proxies import plain_http
from tests.support.proxies.own_servers import own_server
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

SCRIPT = """<!doctype html><title>harm</title><script>
for (let n = 0; n < 400; n++) document.cookie = `c${n}=1; path=/`;
for (let n = 0; n < 400; n++) document.cookie = `c${n}=; path=/; max-age=0`;
for (const name of ["rollway_session", "__Host-rollway_session"])
  for (const rest of ["", "; secure", "; domain=rollway.localhost", "; domain=rollway.localhost; secure"])
    document.cookie = `${name}=of-somebody-else; path=/${rest}`;
document.title = "done";
</script>"""
"""It drives others' cookies out of the browser's jar, and puts sessions of its own there, in every way there is."""

SPY = """
import http.server, json, os

class Spy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        if self.path.endswith("/script"):
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(os.environ["SCRIPT"].encode())
            return
        for name in ("rollway_session", "__Host-rollway_session"):
            self.send_header("set-cookie", f"{name}=of-somebody-else; HttpOnly; Secure; Path=/")
        self.send_header("set-cookie", "shop=a-basket; Path=/")
        self.send_header("clear-site-data", '"cookies"')
        self.end_headers()
        self.wfile.write(json.dumps(self.headers.get_all("cookie") or []).encode())

http.server.ThreadingHTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Spy).serve_forever()
"""
"""It answers with the cookies that it was shown, and with cookies of its own."""


@pytest.fixture
def context() -> Iterator[BrowserContext]:
    program = chromium()
    if program is None:
        pytest.skip(MISSING)
    with browser(program) as started:
        yield started.new_context()


@pytest.fixture
def spied(running_fleet: Fleet, envoy_url: str) -> str:
    """Where the spy is reached."""
    name = f"spy-{uuid4().hex[:6]}"
    running_fleet.ask("create_deployment", deployment=name, desired_replicas=1)
    spec = {
        "command": [sys.executable, "-c", SPY],
        "env": {"SCRIPT": SCRIPT},
        "health_check": {"path": "/", "interval_seconds": 0.5},
    }
    running_fleet.ask("add_revision", deployment=name, name="v1", spec=spec)
    running_fleet.activate(name, "v1")
    eventually(lambda: plain_http.get(f"{envoy_url}/{name}/").status_code == 200, what="the spy answers")
    return f"{envoy_url}/{name}/"


def session_of(context: BrowserContext, *domains: str) -> list[str | None]:
    """The sessions that it holds, of any domain, or of these."""
    return [
        cookie.get("value")
        for cookie in context.cookies()
        if cookie.get("name") == SESSION_COOKIE and (not domains or cookie.get("domain") in domains)
    ]


class Elsewhere(BaseHTTPRequestHandler):
    """The same script, from a server that nothing of Rollway's stands in front of."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(SCRIPT.encode())


def test_a_service_behind_envoy_neither_sees_the_session_of_the_page_nor_replaces_it(
    spied: str, server_beside_fleet: People, context: BrowserContext
) -> None:
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN))
    (session,) = session_of(context)
    assert urlsplit(spied).hostname == urlsplit(server_beside_fleet.server.url).hostname

    service = context.new_page()

    def shown() -> list[str]:
        answer = service.goto(spied)
        assert answer is not None
        return list(json.loads(answer.text()))

    shown()
    assert shown() == ["shop=a-basket"]
    assert session_of(context) == [session]
    page.reload()
    page.get_by_text("live", exact=True).wait_for()


def test_a_script_of_a_service_reaches_no_session_of_the_page_on_its_own_host_name(
    spied: str, server_beside_fleet: People, context: BrowserContext
) -> None:
    page = log_in(
        context, f"http://{PAGE_HOST}:{server_beside_fleet.server.port}", server_beside_fleet.token(Role.ADMIN)
    )
    (session,) = session_of(context)
    service = context.new_page()
    there = f"http://{PAGE_HOST}:{urlsplit(spied).port}{urlsplit(spied).path}script"
    refused = service.goto(there)
    assert refused is not None
    assert refused.status == 421
    service.goto(f"{spied}script")
    service.wait_for_function("document.title === 'done'")
    assert session in session_of(context)
    page.reload()
    page.get_by_text("live", exact=True).wait_for()


@pytest.mark.parametrize("host", [f"evil.{PAGE_HOST}", f"{PAGE_HOST}.", f"evil.{PAGE_HOST}."])
def test_no_service_answers_by_a_name_whose_scripts_set_cookies_for_the_page(
    spied: str, context: BrowserContext, host: str
) -> None:
    service, where = context.new_page(), urlsplit(spied)
    refused = service.goto(f"http://{host}:{where.port}{where.path}script")
    assert refused is not None
    assert refused.status == 421
    assert context.cookies() == []


def test_a_script_below_the_name_of_the_page_gives_it_no_session_of_its_own(
    server_beside_fleet: People, context: BrowserContext
) -> None:
    """Where no Envoy of Rollway's refuses it, it may set cookies that the page is shown."""
    page = log_in(
        context,
        f"http://{PAGE_HOST}:{server_beside_fleet.server.port}",
        server_beside_fleet.token(Role.ADMIN, name="ann"),
    )
    (session,) = session_of(context)
    with own_server(Elsewhere) as server:
        service = context.new_page()
        service.goto(f"http://evil.{PAGE_HOST}:{server.port}/")
        service.wait_for_function("document.title === 'done'")
    assert "rollway_session" in {cookie.get("name") for cookie in context.cookies(page.url)}
    assert session_of(context, PAGE_HOST, f".{PAGE_HOST}") == [session]
    page.reload()
    page.get_by_text("live", exact=True).wait_for()
    page.get_by_role("link", name="ann").wait_for()
