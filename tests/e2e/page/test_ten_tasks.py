"""Ten tasks of somebody on call, from the open list, as a person does them: by clicks that are counted, and by keys."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from db.audit.receipts import seal
from db.connection.transactions import in_transaction
from domain.installation.tokens import Role
from tests.support.people.browser import log_in
from tests.support.people.people_api import People
from tests.support.rows.deployments import read
from tests.support.stack.stack import ROOT, Fleet

pytestmark = pytest.mark.e2e
CAREFUL = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
CANARY = {"strategy": "canary", "spec": {"steps": ["20%"]}}
PROGRAM = f"{sys.executable} {ROOT / 'examples' / 'http_service.py'}"


class Person:
    """Somebody at the page, whose clicks are counted. Keys are not: focus lies where a person types."""

    def __init__(self, page: Page) -> None:
        self.page, self.clicks = page, 0

    def click(self, on: Locator) -> None:
        self.clicks += 1
        on.click()

    def button(self, name: str | re.Pattern[str]) -> None:
        self.click(self.page.get_by_role("group", name="What you can do").get_by_role("button", name=name).first)

    def link(self, name: str) -> None:
        self.click(self.page.get_by_role("link", name=name, exact=True).first)

    def give_reason(self, reason: str) -> None:
        """Type it and press Enter, once the plan is there."""
        dialog = self.page.get_by_role("dialog")
        dialog.get_by_label("Reason").fill(reason)
        dialog.get_by_label("Reason").press("Enter")
        expect(dialog).to_be_hidden()


@pytest.fixture
def person(
    request: pytest.FixtureRequest, running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> Person:
    assert running_fleet
    token = server_beside_fleet.token(Role.ADMIN, name=request.node.name.replace("_", "-")[:30])
    return Person(log_in(context, server_beside_fleet.server.url, token))


@contextmanager
def task(person: Person, most: int) -> Iterator[Page]:
    """From the open list, in at most this number of clicks."""
    expect(person.page.get_by_role("heading", name="Deployments", exact=True)).to_be_visible()
    yield person.page
    assert person.clicks <= most


def rolled(fleet: Fleet, name: str, *revisions: str) -> None:
    fleet.deploy_first(name, 1, CAREFUL)
    for revision in revisions:
        fleet.add_revision(name, revision, VERSION=revision)
        fleet.activate(name, revision)
        fleet.wait_until_ready(name, revision, 1)


def test_1_create_a_small_service(person: Person) -> None:
    with task(person, 3) as page:
        person.button("New deployment")
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Name").fill("task-one")
        dialog.get_by_role("textbox", name="Command").fill(PROGRAM)
        person.give_reason("a new one")
        expect(page.get_by_role("status").get_by_role("link", name="task-one")).to_be_visible()


def test_2_start_a_rollout_and_watch_it(person: Person, running_fleet: Fleet) -> None:
    running_fleet.deploy_first("task-two", 1, CAREFUL)
    running_fleet.add_revision("task-two", "v2")
    with task(person, 4) as page:
        person.link("task-two")
        person.button("Roll out …")
        person.give_reason("it is better")
        expect(page.get_by_role("heading", name=re.compile("Rollout: v1 → v2"))).to_be_visible()


def test_3_read_the_log_of_the_replica_that_failed(person: Person, running_fleet: Fleet) -> None:
    running_fleet.deploy_first("task-three", 1, CAREFUL)
    running_fleet.add_revision("task-three", "v2", BROKEN="start")
    running_fleet.activate("task-three", "v2")
    running_fleet.wait_until_ready("task-three", "v1", 1)
    with task(person, 2) as page:
        person.link("task-three")
        person.click(page.get_by_role("button", name="Log of the replica that failed").first)
        expect(page.get_by_role("region", name=re.compile("Log of"))).to_be_visible()


def test_4_compare_two_revisions(person: Person, running_fleet: Fleet) -> None:
    rolled(running_fleet, "task-four", "v2", "v3")
    with task(person, 2) as page:
        person.link("task-four")
        person.click(page.get_by_role("region", name="Revisions").locator("summary").filter(has_text="v2"))
        expect(page.locator(".difference")).to_contain_text("env.VERSION")


def test_5_promote_a_canary_from_its_curve(person: Person, running_fleet: Fleet) -> None:
    running_fleet.deploy_first("task-five", 2, CANARY)
    running_fleet.add_revision("task-five", "v2")
    running_fleet.activate("task-five", "v2")
    with task(person, 2) as page:
        person.link("task-five")
        person.button("Promote")
        person.give_reason("it is good")
        expect(page.get_by_text("it is good").first).to_be_visible()


def test_6_undo(person: Person, running_fleet: Fleet) -> None:
    rolled(running_fleet, "task-six", "v2")
    with task(person, 2) as page:
        person.link("task-six")
        person.button("Undo: back to v1 …")
        person.give_reason("it is worse")
        expect(page.get_by_role("heading", name=re.compile("Rollback: v2 → v1"))).to_be_visible()


def test_7_freeze_for_four_hours(person: Person, running_fleet: Fleet, server_beside_fleet: People) -> None:
    with task(person, 3) as page:
        person.button("Freeze …")
        person.give_reason("task seven")
        expect(page.locator("#frozen p")).to_contain_text("task seven")
    (row,) = read(server_beside_fleet.engine, "SELECT name FROM freezes WHERE reason = 'task seven'")
    running_fleet.ask("delete_freeze", freeze=row["name"])


def test_8_who_did_what_yesterday(person: Person) -> None:
    with task(person, 2) as page:
        person.link("Activity")
        page.get_by_label("Day").fill("2001-01-01")
        page.get_by_label("Day").press("Enter")
        expect(page).to_have_url(re.compile("day=2001-01-01"))
        expect(page.get_by_text("Nothing of this kind is recorded.")).to_be_visible()


def test_9_read_a_receipt(person: Person, running_fleet: Fleet, server_beside_fleet: People) -> None:
    rolled(running_fleet, "task-nine", "v2")
    query = "SELECT o.id, d.id AS owner FROM rollouts o JOIN deployments d ON d.id = o.deployment_id WHERE d.name = %s"
    (row,) = read(server_beside_fleet.engine, query, "task-nine")
    rollout, owner = UUID(str(row["id"])), UUID(str(row["owner"]))
    in_transaction(server_beside_fleet.engine, lambda connection: seal(connection, owner, rollout))
    with task(person, 2) as page:
        person.link("task-nine")
        person.click(page.get_by_role("region", name="Rollouts").get_by_role("link").first)
        expect(page.get_by_role("heading", name=re.compile("[Rr]eceipt"))).to_be_visible()


def test_10_make_a_token_and_see_sessions(person: Person) -> None:
    with task(person, 2) as page:
        person.link("Tokens")
        expect(page.get_by_label("Name", exact=True)).to_be_focused()
        page.keyboard.type("task-ten")
        page.keyboard.press("Enter")
        expect(page.get_by_text(re.compile("rollway_"))).to_be_visible()
    page.goto(page.url.partition("/tokens")[0])
    person.clicks = 0
    with task(person, 1):
        person.click(page.locator("header a[href='/sessions']"))
        expect(page.get_by_role("button", name="Log out everywhere")).to_be_visible()
