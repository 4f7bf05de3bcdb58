"""Freezes and groups on the live page: who set each and why, and until when a freeze is on."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from domain.installation.tokens import Role
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.rows.deployments import read, write
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
    expect(page.locator("#frozen p")).to_have_text("Frozen: shop-* until Jan 1, 2100")
    expect(page.get_by_text("3 freezes, 1 on; 1 group")).to_be_visible()
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

    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_role("button", name="End now").click()
    dialog = page.get_by_role("dialog", name="End freeze now")
    dialog.get_by_label("Reason").fill("it is done")
    page.locator("#ask-do").click()
    expect(rows).to_have_count(3)
    expect(page.locator("#frozen p")).to_have_count(0)
    for freeze in ("later", "over"):
        running_fleet.ask("delete_freeze", freeze=freeze)


def test_a_freeze_of_four_hours_takes_two_clicks_and_stands_on_every_page(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("icy", 1)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="ida"))
    page.get_by_role("button", name="Freeze …").click()
    dialog = page.get_by_role("dialog", name="Freeze")
    dialog.get_by_label("Reason").fill("the fair")
    assert serious(page) == []
    page.locator("#ask-do").click()
    expect(dialog).to_be_hidden()
    strip = page.locator("#frozen p")
    expect(strip).to_contain_text("Frozen: all deployments until")
    expect(strip).to_contain_text("(the fair)")
    query = "SELECT name, ends_at - starts_at AS lasts FROM freezes WHERE actor = 'ida'"
    (row,) = read(server_beside_fleet.engine, query)
    assert row["lasts"] == timedelta(hours=4)
    for path in ("/hosts", "/activity"):
        page.goto(f"{server_beside_fleet.server.url}{path}")
        expect(strip).to_be_visible()
    page.goto(f"{server_beside_fleet.server.url}/deployments/icy")
    expect(page.locator("main [data-key=freeze]")).to_contain_text("Frozen until")  # with what that means here
    expect(strip).to_be_hidden()
    running_fleet.ask("delete_freeze", freeze=row["name"])


def fill_in(page: Page, name: str, choice: str, **fields: str) -> None:
    """The dialog of a freeze, up to its button."""
    page.get_by_role("button", name="Freeze …").click()
    dialog = page.get_by_role("dialog", name="Freeze")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_label("Length", exact=True).select_option(label=choice)
    for label, value in fields.items():
        dialog.get_by_label(label.replace("_", " "), exact=True).fill(value)
    dialog.get_by_label("Reason").fill("to see")


@pytest.mark.usefixtures("running_fleet")
def test_a_freeze_is_told_in_the_words_of_clocks_here_and_a_wrong_length_says_what_is_right(
    server_beside_fleet: People, chrome: Browser
) -> None:
    context = chrome.new_context(timezone_id="Asia/Kolkata", viewport={"width": 1280, "height": 900})
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="uma"))
    fill_in(page, "short", "another length …", Its_length="90")
    page.locator("#ask-do").click()
    said = page.locator("#ask-length").evaluate("element => element.validationMessage")
    assert said == "A length has a unit, such as 90 min, 6 h or 2 d; from a minute up to 31 days."
    page.get_by_label("Its length").fill("90 min")
    expect(page.locator("#freeze-end")).to_contain_text("(Asia/Calcutta)")
    page.get_by_label("Deployments", exact=True).fill("shop-* Bad")
    page.locator("#ask-do").click()
    expect(page.locator("#ask-wrong")).to_contain_text("deployment 2: must be the name of a deployment")
    page.get_by_label("Deployments", exact=True).fill("shop-* ")
    assert fits(page)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator("#ask-do").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    fill_in(page, "fair", "from … until …", Starts_at="2100-12-24T18:00", Ends_at="2101-01-02T09:00")
    expect(page.get_by_text("As clocks show it in Asia/Calcutta.").first).to_be_visible()
    page.locator("#ask-do").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    fill_in(page, "morning", "until tomorrow 8:00")
    page.locator("#ask-do").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    fill_in(page, "weekend", "again and again, by a cron line …", Cron_line="0 18 * * FRI", Its_length="2 d")
    page.locator("#ask-do").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    query = "SELECT * FROM freezes WHERE actor = 'uma'"
    rows = {row["name"]: row for row in read(server_beside_fleet.engine, query)}
    short, fair, morning, weekend = (rows[name] for name in ("short", "fair", "morning", "weekend"))
    assert (short["ends_at"] - short["starts_at"], short["deployments"]) == (timedelta(minutes=90), ["shop-*"])
    assert fair["starts_at"] == datetime(2100, 12, 24, 12, 30, tzinfo=UTC)
    assert morning["ends_at"].astimezone(UTC).strftime("%H:%M") == "02:30"
    assert (weekend["time_zone"], weekend["duration_seconds"]) == ("Asia/Calcutta", 2 * 86_400)
    write(server_beside_fleet.engine, "DELETE FROM freezes WHERE actor = 'uma'")
    context.close()


def test_who_may_see_some_deployments_alone_sees_no_freezes(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.ask("set_group", group="theirs", deployments=["c"], most_at_once=1)
    with context.expect_event("response", lambda answer: answer.url.endswith("/v1/groups")) as refused:
        page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER, "mine"))
    assert refused.value.status == 403
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    expect(page.locator("#settings")).to_be_empty()
