"""The dialog of a button in a real browser: its plan, its refusals, and what a keyboard alone does with it."""

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from tests.support.people.browser import log_in
from tests.support.people.people_api import People
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e
CAREFUL = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}


def test_who_types_asks_for_a_plan_when_he_has_typed_and_not_at_each_key(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("typed", 1, CAREFUL)
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR), "/deployments/typed"
    )
    asked = list[str]()
    page.get_by_role("button", name="Scale").click()
    dialog = page.get_by_role("dialog")
    replicas = dialog.get_by_label("Desired replicas")
    expect(dialog.locator("#ask-plan")).not_to_be_empty()
    page.on("request", lambda request: asked.append(request.post_data or "") if "/plan" in request.url else None)
    for figures in ("2", "12", "1", "13", "1", "14"):
        replicas.fill(figures)
    expect(dialog.locator("#ask-plan")).to_contain_text("14")
    assert len(asked) == 1, asked


def test_a_refusal_is_told_in_the_dialog_and_a_viewer_has_no_buttons(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("quiet", 1, CAREFUL)
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR), "/deployments/quiet"
    )
    page.get_by_role("button", name="Restart").focus()
    expect(page.get_by_role("button", name="Undo")).to_have_count(0)  # nothing ran before
    page.keyboard.press("Enter")
    begin, end = "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
    running_fleet.ask("set_freeze", freeze="meanwhile", deployments=["quiet"], starts_at=begin, ends_at=end)
    page.keyboard.type("to see")
    with page.expect_response("**/restart") as refused:
        page.keyboard.press("Enter")
    assert refused.value.status == 409
    expect(page.locator("#ask-wrong")).to_contain_text("meanwhile")
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Restart")).to_be_focused()
    page.get_by_role("button", name="Log out").click()
    page.get_by_label("Token").fill(server_beside_fleet.token(Role.VIEWER))
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="quiet").click()
    expect(page.get_by_role("heading", name="quiet", exact=True)).to_be_visible()
    expect(page.get_by_role("group", name="What you can do")).to_have_count(0)
    page.goto(f"{server_beside_fleet.server.url}/deployments/no-such")
    expect(page.get_by_text("there is no deployment called no-such")).to_be_visible()
