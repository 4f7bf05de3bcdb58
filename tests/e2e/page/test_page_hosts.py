"""Hosts on the live page: whether each is seen, what runs there, and what is wrong with it."""

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.rows.deployments import write
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e
HARM = "<img src=x onerror=\"document.title='harm'\">"


def test_a_host_is_seen_drained_silent_and_down_and_its_clock_and_its_name_are_text(
    running_fleet: Fleet, people: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("placed", 2)
    page = log_in(context, people.server.url, people.token(Role.VIEWER))
    page.get_by_role("link", name="Hosts").focus()
    page.keyboard.press("Enter")
    here = page.locator(".host").filter(has_text="here")
    expect(here).to_contain_text("up")
    for fact in ("replicas: 2 healthy", "seen", "clock right", "contract"):
        expect(here).to_contain_text(fact)

    running_fleet.start_workers("far", host="far-away")
    far = page.locator(".host").filter(has_text="far-away")
    expect(far).to_contain_text("replicas: none")
    running_fleet.ask("drain_host", host="here", actor="ann")
    expect(here).to_contain_text("drained by ann")
    running_fleet.kill("far")
    expect(far.locator(".badge")).to_have_text("silent")
    expect(far.locator(".badge")).to_have_text("down", timeout=60_000)
    expect(page.locator(".host").first).to_contain_text("far-away")
    write(people.engine, "UPDATE hosts SET name = %s, clock_offset_seconds = -75 WHERE name = 'far-away'", HARM)
    harm = page.locator(".host").filter(has_text=HARM)
    expect(harm).to_contain_text("clock 1 min 15 s behind")
    expect(page).to_have_title("Hosts · Rollway")
    assert serious(page) == []
    assert fits(page)
    page.emulate_media(color_scheme="dark")
    assert serious(page) == []


def test_who_may_see_some_deployments_alone_sees_no_hosts(
    running_fleet: Fleet, people: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("mine", 1)
    page = log_in(context, people.server.url, people.token(Role.VIEWER, "mine"))
    expect(page.get_by_role("link", name="mine")).to_be_visible()
    expect(page.get_by_role("link", name="Hosts")).to_have_count(0)
    page.goto(f"{people.server.url}/hosts")
    expect(page.locator("#hosts .why")).to_be_visible()
    expect(page.locator(".host")).to_have_count(0)
