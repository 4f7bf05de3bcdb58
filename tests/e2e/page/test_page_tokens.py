"""Tokens and sessions in a real browser: made and copied, ended by name, and no half-written reason is lost."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from db.access_tokens import end_sessions, revoke_token
from db.connection.transactions import in_transaction
from domain.installation.tokens import Role
from tests.support.people.browser import log_in, serious
from tests.support.people.people_api import People
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e
LONG = "a-service-with-a-name-that-is-as-long-as-a-name-of-a-token-may"


def overflow(page: Page) -> list[int]:
    """The widths, of those of telephones, tablets and screens, at which something hangs out sideways."""
    wide = []
    for width in (320, 400, 600, 768, 1024, 1280):
        page.set_viewport_size({"width": width, "height": 700})
        inner = "[...document.querySelectorAll('main *')].every(e => e.getBoundingClientRect().right <= innerWidth)"
        if page.evaluate("document.documentElement.scrollWidth") > width or not page.evaluate(inner):
            wide.append(width)
    return wide


@pytest.mark.usefixtures("running_fleet")
def test_a_token_is_made_copied_and_revoked_by_name_and_nothing_overflows(
    server_beside_fleet: People, context: BrowserContext
) -> None:
    server_beside_fleet.token(Role.VIEWER, *(f"deployment-{number}" for number in range(12)), name=LONG)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="ada"))
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("link", name="Tokens").click()
    page.get_by_label("Name", exact=True).fill("ci")
    page.get_by_label("Role", exact=True).select_option("releaser")
    page.get_by_role("button", name="Make token").click()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    secret = page.evaluate("navigator.clipboard.readText()")
    assert secret.startswith("rollway_")
    assert serious(page) == []
    assert overflow(page) == []
    page.emulate_media(color_scheme="dark")
    assert serious(page) == []

    row = page.locator("li").filter(has=page.get_by_text("ci", exact=True)).last
    row.get_by_text("Revoke …").click()
    row.get_by_label("Type ci to confirm").fill("c")
    row.get_by_role("button", name="Revoke ci").click()
    expect(row).to_be_visible()  # the browser sends nothing
    row.get_by_label("Type ci to confirm").fill("ci")
    row.get_by_role("button", name="Revoke ci").click()
    expect(page.get_by_text("ci", exact=True)).to_have_count(0)

    page.goto(f"{server_beside_fleet.server.url}/sessions")
    expect(page.get_by_text("Chrome on Linux").first).to_be_visible()
    expect(page.get_by_role("button", name="Log out this session")).to_be_visible()
    assert serious(page) == []
    assert overflow(page) == []


def test_whose_session_is_over_is_told_why(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("told", 1)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR, name="ida"))
    in_transaction(server_beside_fleet.engine, lambda connection: revoke_token(connection, "ida", "ada"))
    expect(page.get_by_text("Your token was revoked or has expired.")).to_be_visible()


def test_what_was_typed_in_a_dialog_is_not_lost_when_the_session_ends(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("kept", 1)
    secret, url = server_beside_fleet.token(Role.OPERATOR, name="eva"), server_beside_fleet.server.url
    page = log_in(context, url, secret, "/deployments/kept")
    page.get_by_role("button", name="Scale").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Desired replicas").fill("2")
    dialog.get_by_label("Reason").fill("half a sentence that took a while")
    in_transaction(server_beside_fleet.engine, lambda connection: end_sessions(connection, "eva", "ada"))
    notice = dialog.get_by_text("Your session is over. What you typed stays here")
    expect(notice).to_be_visible()
    with context.expect_page() as opened:
        dialog.get_by_role("link", name="Log in").click()
    other = opened.value
    other.get_by_label("Token").fill(secret)
    other.get_by_role("button", name="Log in").click()
    other.get_by_text("live", exact=True).wait_for()
    expect(notice).to_be_hidden()
    expect(dialog.get_by_label("Reason")).to_have_value("half a sentence that took a while")
    page.locator("#ask-do").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_text("half a sentence that took a while")).to_be_visible()


@pytest.mark.usefixtures("running_fleet")
def test_a_link_logs_in_once_leaves_no_secret_in_the_address_and_obeys_no_other_site(
    server_beside_fleet: People, context: BrowserContext, chrome: Browser, tmp_path: Path
) -> None:
    url = server_beside_fleet.server.url
    with server_beside_fleet.client(Role.VIEWER, name="lin") as client:
        links = [f"{url}{client.post('/v1/login-links').json()['path']}" for _ in range(2)]
    page, asked = context.new_page(), list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(links[0])
    page.get_by_text("live", exact=True).wait_for()
    expect(page.get_by_role("link", name="lin")).to_be_visible()
    secret = links[0].partition("#link=")[2]
    assert [address for address in asked if secret in address] == []

    other = chrome.new_context()
    again = other.new_page()
    again.goto(links[0])
    expect(again.get_by_role("alert")).to_contain_text("this link has been used already")
    assert serious(again) == []
    assert "#" not in again.url
    elsewhere = tmp_path / "elsewhere.html"
    elsewhere.write_text(f'<a href="{links[1]}">free money</a>', encoding="utf-8")
    again.goto(elsewhere.as_uri())
    again.get_by_role("link").click()
    expect(again.get_by_text("Another site has led here.")).to_be_visible()
    expect(again.get_by_label("Token")).to_be_visible()
    other.close()
