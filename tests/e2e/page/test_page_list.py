"""What waits is promoted from the list, one after the other, without leaving it."""

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e
BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": False}}
NAMES = ("first", "second")


def test_each_row_that_waits_has_its_button_and_the_next_one_is_a_key_away(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    for name in NAMES:
        running_fleet.deploy_first(name, 1, BLUE_GREEN)
        running_fleet.add_revision(name, "v2")
        running_fleet.activate(name, "v2")
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR))
    waiting, dialog = page.get_by_role("region", name="Waiting for you"), page.get_by_role("dialog")
    for name in NAMES:
        expect(waiting.get_by_role("button", name=f"Promote {name} …")).to_be_visible()
    assert serious(page) == []
    page.emulate_media(color_scheme="dark")
    assert serious(page) == []
    assert fits(page)
    waiting.get_by_role("button", name="Promote first …").click()
    expect(dialog.locator("#ask-plan")).to_contain_text("never more than")
    page.keyboard.type("looks good")
    page.keyboard.press("Enter")
    expect(waiting.get_by_role("button", name="Promote second …")).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("heading")).to_contain_text("second")
    page.keyboard.type("this one too")
    page.keyboard.press("Enter")
    for name in NAMES:
        running_fleet.wait_until_ready(name, "v2", 1)
    expect(waiting).to_be_hidden()
    page.get_by_role("button", name="Log out").click()
    guest = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER))
    running_fleet.activate("first", "v1")
    expect(guest.get_by_role("region", name="Waiting for you").get_by_role("link", name="first")).to_be_visible()
    expect(guest.get_by_role("button", name="Promote")).to_have_count(0)
