"""Who did what, on the live page: the fleet's records filtered and in pages, and those of one deployment."""

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e
HARM = "<img src=x onerror=\"document.title='harm'\">"


def test_who_did_what_is_found_by_person_day_deployment_and_kind_and_stands_in_the_address(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("noted", 1)
    running_fleet.ask("scale", deployment="noted", desired_replicas=2, actor="bob", reason="more people")
    begin, end = "2100-01-01T00:00:00Z", "2100-02-01T00:00:00Z"
    running_fleet.ask("set_freeze", freeze="fair", starts_at=begin, ends_at=end, actor="eve", reason=HARM)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="ada"))
    page.get_by_role("link", name="Activity").click()
    rows = page.locator("#activity .record")
    expect(rows.nth(0)).to_contain_text("logged in to the page from 127.0.0.1, Chrome on Linux")
    frozen = rows.filter(has_text="set freeze").filter(has_text="eve")
    expect(frozen).to_contain_text(f"fair: from 2100-01-01 00:00 UTC, for all deployments: {HARM}")
    assert serious(page) == []
    page.emulate_media(color_scheme="dark")
    assert serious(page) == []
    assert fits(page)
    page.set_viewport_size({"width": 1280, "height": 900})

    page.get_by_label("Person").fill("bob")
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(f"{server_beside_fleet.server.url}/activity?who=bob")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("more people")
    page.get_by_role("link", name="noted").click()
    expect(page.get_by_role("heading", name="noted", exact=True)).to_be_visible()
    page.go_back()
    expect(rows).to_have_count(1)


def test_kinds_days_and_rollways_own_steps_are_chosen(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("chosen", 1)
    begin, end = "2100-01-01T00:00:00Z", "2100-02-01T00:00:00Z"
    running_fleet.ask("set_freeze", freeze="fair", starts_at=begin, ends_at=end, actor="zoe")
    secret, url = server_beside_fleet.token(Role.VIEWER), server_beside_fleet.server.url
    page = log_in(context, url, secret, "/activity?kind=freezes&day=2001-01-01")
    rows = page.locator("#activity .record")
    expect(page.get_by_text("Nothing of this kind is recorded.")).to_be_visible()
    expect(page.get_by_label("Kind")).to_have_value("freezes")
    page.get_by_label("Day").fill("")
    page.get_by_role("button", name="Show").click()
    expect(rows.filter(has_text="zoe")).to_have_count(1)
    expect(rows.filter(has_text="scale")).to_have_count(0)

    page.goto(f"{url}/activity?deployment=chosen")
    expect(rows.filter(has_text="scaling")).to_have_count(0)
    page.get_by_label("Rollway's own steps too").check()
    page.get_by_role("button", name="Show").click()
    expect(rows.filter(has_text="scaling").first).to_be_visible()


def test_records_go_on_in_pages_for_the_fleet_and_for_one_deployment(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("busy", 1)
    for time in range(60):
        running_fleet.ask(
            "scale", deployment="busy", desired_replicas=2 - time % 2, actor="ann", reason=f"time {time}."
        )
    secret = server_beside_fleet.token(Role.VIEWER)
    page = log_in(context, server_beside_fleet.server.url, secret, "/activity?who=ann&deployment=busy")
    rows = page.locator("#activity .record")
    expect(rows).to_have_count(50)
    page.get_by_role("link", name="Earlier").click()
    expect(rows.filter(has_text="time 0.")).to_be_visible()
    page.get_by_role("link", name="Newest").click()
    expect(rows.filter(has_text="time 59.")).to_be_visible()

    page.goto(f"{server_beside_fleet.server.url}/deployments/busy")
    history = page.locator("[aria-labelledby=history-head]")
    expect(history.locator(".record").filter(has_text="time 59.")).to_be_visible()
    expect(history.locator(".record").filter(has_text="time 0.")).to_have_count(0)
    while history.get_by_role("button", name="Earlier").count():
        before = history.locator(".record").count()
        history.get_by_role("button", name="Earlier").click()
        expect(history.locator(".record").nth(before)).to_be_attached()
    expect(history.locator(".record").filter(has_text="time ")).to_have_count(60)
    expect(history.locator(".record:not(.person)").first).to_be_visible()
    page.get_by_role("button", name="Only people's actions").click()
    expect(history.locator(".record").filter(has_text="time ")).to_have_count(60)
    expect(history.locator(".record:not(.person)")).to_have_count(0)
    expect(history.get_by_role("button", name="Earlier")).to_be_hidden()
    assert serious(page) == []
    assert fits(page)
