"""The list with hundreds of deployments in a real browser: what changes is changed in place, and nothing is lost."""

from collections.abc import Iterator
from typing import LiteralString

import pytest
from playwright.sync_api import Page, expect

from db.connection.transactions import in_transaction
from domain.installation.tokens import Role
from tests.support.people.browser import MISSING, browser, chromium, log_in
from tests.support.people.people_api import People
from tests.support.stack.waiting import eventually

_MANY = 300
_FLEET: LiteralString = """
    INSERT INTO deployments (name, desired_replicas, reason)
    SELECT 'service-' || lpad(n::text, 4, '0'), 3, 'as it was' FROM generate_series(1, %s) n
"""

_READ_AGAIN_SLOWLY = """async () => {
    const { fetch } = window;
    window.reads = 0;
    window.fetch = async (path, ...rest) => {
      const answer = await fetch(path, ...rest);
      if (!String(path).startsWith("/v1/deployments?")) return answer;
      if (!window.go) await new Promise((go) => { window.go = go; });
      window.reads += 1;
      return answer;
    };
    for (const value of ["hidden", "visible"]) {
      Object.defineProperty(document, "visibilityState", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
      await new Promise((done) => setTimeout(done, 200));
    }
}"""
"""The tab is hidden and looked at again; the first page of the list is here and not given out yet."""


def write(people: People, statement: LiteralString, *values: object) -> None:
    in_transaction(people.engine, lambda connection: connection.execute(statement, values))


@pytest.fixture(scope="module")
def page(people_server: People) -> Iterator[Page]:
    program = chromium()
    if program is None:
        pytest.skip(MISSING)
    write(people_server, _FLEET, _MANY)
    expect.set_options(timeout=20_000)
    with browser(program) as started:
        shown = log_in(started.new_context(), people_server.server.url, people_server.token(Role.VIEWER))
        expect(shown.locator(".row")).to_have_count(_MANY)
        yield shown


def test_one_row_of_hundreds_changes_in_place_and_focus_survives(people_server: People, page: Page) -> None:
    row = page.locator("[data-key=service-0150]")
    row.get_by_role("link").focus()
    page.evaluate("window.was = [...document.querySelectorAll('.row')]")
    write(
        people_server, "UPDATE deployments SET version = version + 1, reason = 'it moves' WHERE name = 'service-0150'"
    )
    expect(row).to_contain_text("it moves")
    expect(row.get_by_role("link")).to_be_focused()
    assert page.evaluate("[...document.querySelectorAll('.row')].every((row, place) => row === window.was[place])")


def test_a_change_of_them_all_at_once_is_shown_of_each(people_server: People, page: Page) -> None:
    write(people_server, "UPDATE deployments SET version = version + 1, reason = 'all at once'")
    expect(page.locator(".row .why").filter(has_text="all at once")).to_have_count(_MANY)


def test_one_that_is_made_while_the_list_is_read_stays(people_server: People, page: Page) -> None:
    page.evaluate(_READ_AGAIN_SLOWLY)
    eventually(lambda: page.evaluate("window.go !== undefined"), what="the list to be read")
    write(people_server, "INSERT INTO deployments (name, desired_replicas) VALUES ('made-meanwhile', 1)")
    expect(page.locator("[data-key=made-meanwhile]")).to_be_attached()
    page.evaluate("window.go()")
    eventually(lambda: page.evaluate("window.reads === 2"), what="all pages of it")
    page.evaluate("new Promise((drawn) => setTimeout(drawn, 200))")
    expect(page.locator("[data-key=made-meanwhile]")).to_be_attached()


_AGED: LiteralString = "UPDATE deployments SET version = version + 1, phase_started_at = now() - %s::interval"


def names_of(page: Page) -> list[str]:
    found: list[str] = page.locator("#rows .row:visible .name").all_text_contents()
    return found


def test_the_list_is_ordered_by_a_column_either_way_and_stays_so_as_rows_change(
    people_server: People, page: Page
) -> None:
    write(
        people_server,
        f"{_AGED} WHERE name = 'service-0042'",
        "9 days",
    )
    page.get_by_role("button", name="Age").click()
    expect(page.get_by_role("columnheader", name="Age")).to_have_attribute("aria-sort", "ascending")
    expect(page.locator("#rows .row").last).to_contain_text("service-0042")
    page.get_by_role("button", name="Age").click()
    expect(page.get_by_role("columnheader", name="Age")).to_have_attribute("aria-sort", "descending")
    assert page.url.endswith("/?sort=-age")
    expect(page.locator("#rows .row").first).to_contain_text("service-0042")
    write(
        people_server,
        f"{_AGED} WHERE name = 'service-0299'",
        "10 days",
    )
    expect(page.locator("#rows .row").first).to_contain_text("service-0299")
    page.reload()
    expect(page.locator("#rows .row")).to_have_count(_MANY + 1)
    expect(page.locator("#rows .row").first).to_contain_text("service-0299")
    page.get_by_role("button", name="Deployment", exact=True).click()
    page.get_by_role("button", name="Deployment", exact=True).click()
    expect(page.locator("#rows .row").first).to_contain_text("service-0300")
    names = names_of(page)
    assert names == sorted(names, reverse=True)
    page.get_by_role("button", name="Deployment", exact=True).click()
    assert "sort" not in page.url
    assert names_of(page) == sorted(names)


def test_the_way_back_leads_to_the_row_that_was_on_top(page: Page) -> None:
    page.get_by_role("searchbox").fill("service-0")
    page.locator("[data-key=service-0200]").scroll_into_view_if_needed()
    row = page.locator("[data-key=service-0190]")
    row.evaluate("row => row.scrollIntoView({ block: 'start' })")
    eventually(lambda: page.evaluate("history.state?.top?.name") == "service-0190", what="the place to be kept")
    page.locator("[data-key=service-0195] a").click()
    page.get_by_role("heading", name="service-0195").wait_for()
    page.go_back()
    expect(page.locator("#rows .row")).to_have_count(_MANY + 1)
    expect(page.get_by_role("searchbox")).to_have_value("service-0")
    eventually(
        lambda: abs(page.locator("[data-key=service-0190]").evaluate("row => row.getBoundingClientRect().top")) < 20,
        what="the same row on top",
    )
    assert page.locator("[data-key=made-meanwhile]").is_hidden()


def test_the_filter_finds_the_reason_and_enter_opens_the_only_row_that_is_left(
    people_server: People, page: Page
) -> None:
    write(
        people_server,
        "UPDATE deployments SET version = version + 1, reason = 'Waits for the MOON' WHERE name = 'service-0077'",
    )
    filter_ = page.get_by_role("searchbox")
    filter_.fill("service-00")
    filter_.press("Enter")
    assert "/deployments/" not in page.url
    filter_.fill("the moon")
    expect(page.locator(".row:visible")).to_have_count(1)
    filter_.press("Enter")
    expect(page.get_by_role("heading", name="service-0077")).to_be_visible()
    assert page.url.endswith("/deployments/service-0077")
    page.goto(people_server.server.url)
    expect(page.locator("#rows .row")).to_have_count(_MANY + 1)
