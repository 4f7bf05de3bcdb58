"""The logs of replicas on the live page: as text, read on, followed, and kept when their replicas have ended."""

import sys

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.proxies import plain_http
from tests.support.rows.deployments import read
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e
HARM = "<script>document.title = 'harm'</script><img src=x onerror=\"document.title = 'harm'\">"
TALKER = f"""
import http.server, os

class Talker(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        print("asked for", self.path, flush=True)

    def log_message(self, *_):
        pass

print({HARM!r}, flush=True)
print("\\x1b[31mred\\x1b[0m letters", flush=True)
http.server.ThreadingHTTPServer((os.environ["HOST"], int(os.environ["PORT"])), Talker).serve_forever()
"""
"""It prints what would be obeyed if it were shown as anything but text, then what it is asked for."""


def talks(fleet: Fleet, name: str, *revisions: str) -> None:
    """A deployment of one replica that runs the first of its revisions."""
    fleet.ask("create_deployment", deployment=name, desired_replicas=1)
    for number, revision in enumerate(revisions):
        spec = {
            "command": [sys.executable, "-c", TALKER],
            "env": {"NUMBER": str(number)},
            "health_check": {"path": "/", "interval_seconds": 1},
            "drain_seconds": 0.2,
        }
        fleet.ask("add_revision", deployment=name, name=revision, spec=spec)
    fleet.activate(name, revisions[0])


def test_a_log_is_text_and_read_on_and_followed_and_stays_when_its_replica_has_ended(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    talks(running_fleet, "talker", "v1", "v2")
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR), "/deployments/talker"
    )
    expect(page.get_by_text("1/1 serving")).to_be_visible()
    query = "SELECT r.address FROM routes r JOIN deployments d ON d.id = r.deployment_id WHERE d.name = %s"
    (route,) = read(server_beside_fleet.engine, query, "talker")
    opens = page.get_by_role("button", name="Log of")
    opens.focus()
    page.keyboard.press("Enter")
    log = page.get_by_role("region", name="Log of")
    expect(log).to_contain_text(HARM)
    expect(log).to_contain_text("red letters")
    expect(log).to_be_focused()
    assert page.title() == "talker · Rollway"
    assert page.locator("#deployment").evaluate("it => it.querySelectorAll('script, img').length") == 0

    plain_http.get(f"http://{route['address']}/once")
    page.get_by_role("button", name="Load more").click()
    expect(log).to_contain_text("asked for /once")
    page.get_by_role("button", name="Follow").click()
    plain_http.get(f"http://{route['address']}/twice")
    expect(log).to_contain_text("asked for /twice")
    assert serious(page) == []
    assert fits(page)

    running_fleet.activate("talker", "v2")
    expect(page.get_by_role("heading", name="which has ended")).to_be_visible()
    expect(page.get_by_role("button", name="Follow")).to_have_count(0)
    expect(log).to_contain_text("asked for /twice")
    page.get_by_role("button", name="Close").click()
    expect(log).to_have_count(0)
    page.get_by_text("Stopped replicas").click()
    page.locator("#ended").get_by_role("button", name="Log of").click()
    expect(log).to_contain_text(HARM)
    assert serious(page) == []


@pytest.mark.parametrize("role", [Role.VIEWER, Role.RELEASER])
def test_who_may_read_no_log_is_offered_none(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext, role: Role
) -> None:
    name = f"unread-by-{role}"
    talks(running_fleet, name, "v1")
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(role), f"/deployments/{name}")
    expect(page.get_by_text("1/1 serving")).to_be_visible()
    expect(page.get_by_role("button", name="Log of")).to_have_count(0)
