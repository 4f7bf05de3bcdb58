"""The live page in bad weather: no connection, a server that hangs, somebody who is faster, and texts that mislead."""

import pytest
from playwright.sync_api import BrowserContext, Request, Route, expect

from domain.installation.tokens import Role
from tests.support.people.browser import log_in, serious
from tests.support.people.people_api import People
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e
NOTICED = 11_000
"""Milliseconds: ten seconds, and one to look."""
SLOWER_THAN_FIRST = 15_000
"""Milliseconds: more than a page waits for its scripts when it is loaded for the first time."""
AFTER_OFFLINE = """() => new Promise((done) => {
    const link = document.getElementById("link");
    new MutationObserver(() => done(link.textContent)).observe(link, { childList: true, subtree: true });
    setTimeout(() => done("nothing"), 20000);
    dispatchEvent(new Event("offline"));
})"""
"""What the header says next, once the browser has said that it is offline."""
BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": False}}


def test_who_is_offline_is_told_since_when_and_the_rest_fades(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("away", 1)
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR), "/deployments/away"
    )
    # the browser's word alone is enough, before any request has failed
    assert "no connection since" in page.evaluate(AFTER_OFFLINE)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    context.set_offline(True)
    expect(page.get_by_text("no connection since")).to_be_visible(timeout=3_000)
    expect(page.locator("body")).to_have_class("stale")
    assert serious(page) == []
    context.set_offline(False)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(page.locator("body")).not_to_have_class("stale")


def test_a_server_that_hangs_is_noticed_within_ten_seconds(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("hangs", 1)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/hangs")
    server_beside_fleet.server.freeze()
    try:
        expect(page.get_by_text("no connection since")).to_be_visible(timeout=NOTICED)
    finally:
        server_beside_fleet.server.thaw()
    expect(page.get_by_text("live", exact=True)).to_be_visible()


def test_a_page_whose_script_has_not_come_loads_itself_again(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("cut", 1)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER))
    page.route("**/static/deployment.js", lambda route: route.abort(), times=1)
    page.goto(f"{server_beside_fleet.server.url}/deployments/cut", wait_until="commit")
    expect(page.get_by_text("connecting", exact=True)).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_visible(timeout=60_000)
    expect(page.get_by_role("heading", name="cut")).to_be_visible()


def test_a_page_over_a_slow_line_is_not_loaded_again_and_again(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("slow", 1)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER))
    scripts: list[Route] = []
    page.route("**/static/deployment.js", lambda route: scripts.append(route))  # noqa: PLW0108 -- Playwright binds no built-in
    page.goto(f"{server_beside_fleet.server.url}/deployments/slow", wait_until="commit")
    loads: list[Request] = []
    page.on("request", lambda request: loads.append(request) if request.is_navigation_request() else None)
    page.wait_for_event("request", lambda request: "deployment.js" in request.url and bool(loads), timeout=60_000)
    page.wait_for_timeout(SLOWER_THAN_FIRST)
    assert len(loads) == 1
    scripts[-1].continue_()
    expect(page.get_by_text("live", exact=True)).to_be_visible()


def test_who_is_too_late_is_told_in_the_open_dialog(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("raced", 1, BLUE_GREEN)
    running_fleet.add_revision("raced", "v2")
    running_fleet.activate("raced", "v2")
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR), "/deployments/raced"
    )
    page.get_by_role("button", name="Promote").first.click(timeout=60_000)
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("it looks well")
    running_fleet.ask("promote", deployment="raced", actor="bob", reason="first")
    expect(page.locator("#ask-wrong")).to_contain_text("bob was faster")
    expect(dialog.get_by_label("Reason")).to_have_value("it looks well")


def test_a_direction_override_is_shown_as_what_it_is(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("turned", 1)
    command = ["sleep", "3600", "\u202egnp.exe"]
    running_fleet.ask("add_revision", deployment="turned", name="odd", spec={"command": command})
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/turned"
    )
    expect(page.locator("[data-revision=odd] .runs")).to_have_text("sleep 3600 [U+202E]gnp.exe")
    eventually(lambda: "\u202e" not in page.content())


def test_a_deployment_that_does_not_exist_names_those_that_are_called_alike(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("checkout", 1)
    url = server_beside_fleet.server.url
    page = log_in(context, url, server_beside_fleet.token(Role.VIEWER), "/deployments/chekout")
    expect(page.get_by_text("there is no deployment called chekout")).to_be_visible()
    expect(page.locator("#legend")).to_be_hidden()
    page.get_by_role("link", name="checkout").click()
    expect(page.locator("#legend")).to_be_visible()
    page.goto(f"{url}/deployments/checkout/undo")
    expect(page.get_by_text("is the address of a button")).to_be_visible()
    assert serious(page) == []
    page.get_by_role("link", name="checkout").click()
    expect(page).to_have_url(f"{url}/deployments/checkout")
    page.goto(f"{url}/deployments")
    expect(page).to_have_url(f"{url}/")
