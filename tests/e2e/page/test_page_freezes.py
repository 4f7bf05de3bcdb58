"""Freezes and groups on the live page: who set each and why, and until when a freeze is on."""

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e
HARM = "<img src=x onerror=\"document.title='harm'\">"


def test_freezes_and_groups_are_listed_with_who_set_them_and_one_that_is_ended_goes(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    begin, end = "2020-01-01T00:00:00Z", "2100-01-01T00:00:00Z"
    running_fleet.ask("set_freeze", freeze="now", deployments=["shop-*"], starts_at=begin, ends_at=end, actor="ann")
    running_fleet.ask("set_freeze", freeze="later", starts_at=end, ends_at="2100-02-01T00:00:00Z", actor="ben")
    running_fleet.ask("set_freeze", freeze="over", starts_at="2019-01-01T00:00:00Z", ends_at=begin, groups=["g"])
    running_fleet.ask("set_group", group="g", deployments=["a", "b"], most_at_once=1, actor="eve", reason=HARM)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="ann"))
    summary = page.get_by_text("3 freezes, 1 on; 1 group")
    summary.focus()
    page.keyboard.press("Enter")
    rows = page.locator("#settings li")
    expect(rows).to_have_count(4)
    for row, said in ((0, "later"), (1, "now"), (2, "over"), (3, "g")):
        expect(rows.nth(row).locator("strong")).to_have_text(said)
    expect(rows.nth(0)).to_contain_text("from Jan 1, 2100")
    expect(rows.nth(0)).to_contain_text("all deployments, set by ben")
    expect(rows.nth(1)).to_contain_text("on until Jan 1, 2100")
    expect(rows.nth(1)).to_contain_text("shop-*, set by ann")
    expect(rows.nth(2)).to_contain_text("over: the group g")
    expect(rows.nth(3)).to_contain_text(f"1 at once: a, b, set by eve: “{HARM}”")
    assert serious(page) == []
    assert fits(page)

    page.get_by_role("button", name="End freeze").click()
    page.get_by_role("dialog").get_by_label("Freeze").fill("now")
    page.get_by_role("dialog").get_by_label("Reason").fill("it is done")
    page.locator("#ask-do").click()
    expect(rows).to_have_count(3)


def test_who_may_see_some_deployments_alone_sees_no_freezes(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.ask("set_group", group="theirs", deployments=["c"], most_at_once=1)
    with context.expect_event("response", lambda answer: answer.url.endswith("/v1/groups")) as refused:
        page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER, "mine"))
    assert refused.value.status == 403
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(page.locator("#settings")).to_be_empty()
