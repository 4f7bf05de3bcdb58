"""A service behind Envoy that means harm to who is logged in to the page, in one browser, on one host name."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext

from domain.installation.tokens import PAGE_HOST, SESSION_COOKIE, Role
from tests.support.people.browser import MISSING, browser, chromium, log_in
from tests.support.people.people_api import People, people_process
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e

SPY = """
import http.server, json, os

class Spy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("set-cookie", "rollway_session=of-somebody-else; HttpOnly; Path=/")
        self.send_header("set-cookie", "shop=a-basket; Path=/")
        self.send_header("clear-site-data", '"cookies"')
        self.end_headers()
        self.wfile.write(json.dumps(self.headers.get_all("cookie") or []).encode())

http.server.ThreadingHTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Spy).serve_forever()
"""
"""It answers with the cookies that it was shown, and with cookies of its own."""


@pytest.fixture
def people(running_fleet: Fleet, tmp_path: Path) -> Iterator[People]:
    served = people_process(running_fleet.database, running_fleet.environment["REDIS_URL"], tmp_path)
    made = People(served, running_fleet.database)
    made.server.start()
    yield made
    made.server.end(kill=True)
    made.engine.dispose()


@pytest.fixture
def context() -> Iterator[BrowserContext]:
    program = chromium()
    if program is None:
        pytest.skip(MISSING)
    with browser(program) as started:
        yield started.new_context()


def session_of(context: BrowserContext) -> list[str | None]:
    return [cookie.get("value") for cookie in context.cookies() if cookie.get("name") == SESSION_COOKIE]


def test_a_service_behind_envoy_neither_sees_the_session_of_the_page_nor_replaces_it(
    running_fleet: Fleet, envoy: str, people: People, context: BrowserContext
) -> None:
    running_fleet.ask("create_deployment", deployment="spy", desired_replicas=1)
    spec = {"command": [sys.executable, "-c", SPY], "health_check": {"path": "/", "interval_seconds": 0.5}}
    running_fleet.ask("add_revision", deployment="spy", name="v1", spec=spec)
    running_fleet.activate("spy", "v1")

    page = log_in(context, people.server.url, people.token(Role.ADMIN))
    (session,) = session_of(context)
    assert urlsplit(envoy).hostname == urlsplit(people.server.url).hostname

    service = context.new_page()

    def shown() -> list[str]:
        answer = service.goto(f"{envoy}/spy/")
        assert answer is not None
        return list(json.loads(answer.text())) if answer.ok else ["not yet"]

    while shown() == ["not yet"]:
        service.wait_for_timeout(200)
    assert shown() == ["shop=a-basket"]
    assert session_of(context) == [session]
    scripted = service.goto(f"http://{PAGE_HOST}:{urlsplit(envoy).port}/spy/")
    assert scripted is not None
    assert scripted.status == 421
    page.reload()
    page.get_by_text("live", exact=True).wait_for()
