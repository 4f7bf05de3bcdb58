"""Revisions on the live page: what each runs, no value of a variable, and what differs from the one that runs."""

import re

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e


def test_revisions_show_what_they_run_and_what_differs_from_what_runs_and_no_value(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("kept", 1)
    running_fleet.add_revision("kept", "v2", TOKEN="tiger", MODE="<b>fast</b>")
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/kept")
    section = page.get_by_role("region", name="Revisions")
    rows = section.locator(".revisions > li")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("current")
    rows.nth(0).locator("summary").focus()
    page.keyboard.press("Enter")
    expect(rows.nth(0).locator(".content")).to_contain_text("health_check.interval_seconds")
    difference = section.locator(".difference")
    expect(difference.locator("ins")).to_have_text(["+ env.MODE: ***", "+ env.TOKEN: ***"])
    rows.nth(1).locator("summary").click()
    expect(rows.nth(1).locator(".content")).to_contain_text("http_service.py")
    expect(rows.nth(1).get_by_label("Compare v1 with")).to_have_value("v2")

    running_fleet.add_revision("kept", "v3", TOKEN="lion", MODE="<b>fast</b>")  # said to nobody but the history
    expect(rows).to_have_count(3)
    running_fleet.activate("kept", "v2")
    running_fleet.wait_until_ready("kept", "v2", 1)
    expect(rows.nth(1)).to_contain_text("current")
    rows.nth(0).locator("summary").click()
    expect(rows.nth(0).locator(".difference li")).to_have_text(["- env.TOKEN: ***", "+ env.TOKEN: *** (another value)"])
    assert all(value not in page.content() for value in ("tiger", "lion", "<b>fast", "&lt;b&gt;fast"))
    assert serious(page) == []
    assert fits(page)


def test_a_revision_that_has_only_failed_is_marked_where_it_is_listed_and_where_it_is_chosen(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("broken", 1)
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR), "/deployments/broken"
    )
    running_fleet.add_revision("broken", "v2")
    running_fleet.ask("add_revision", deployment="broken", name="v3", spec={"command": ["sh", "-c", "sleep 3; exit 1"]})
    running_fleet.activate("broken", "v3")
    expect(page.locator(".head")).to_contain_text("v1 → v3")
    rows = page.get_by_role("region", name="Revisions").locator(".revisions > li")
    expect(page.get_by_role("region", name=re.compile("Rollout: v1 → v3"))).to_contain_text("rolled back")
    expect(rows.nth(0)).to_contain_text("never started")
    for place in (1, 2):
        expect(rows.nth(place)).not_to_contain_text("failed")
    page.get_by_role("button", name="Roll out …", exact=True).click()
    choice = page.get_by_role("dialog").get_by_label("Revision")
    expect(choice.locator("option")).to_have_text(["v3, never started", "v2"])
    expect(choice).to_have_value("v2")
    assert serious(page) == []
    assert fits(page)
