"""Earlier rollouts on the live page: a list of them, each on a page of its own with its waves and its receipt."""

import re
from uuid import UUID, uuid4

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from db.audit.receipts import seal
from db.connection.transactions import in_transaction
from domain.installation.tokens import Role
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.rows.deployments import read, write
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e
LAST = "SELECT o.id FROM rollouts o JOIN deployments d ON d.id = deployment_id WHERE d.name = %s ORDER BY o.id DESC"
HARM = "<img src=x onerror=\"document.title='harm'\">"


def rolled(fleet: Fleet, name: str, *revisions: str, reason: str = "") -> None:
    """A deployment of one replica that has run each of these revisions, the last of which runs."""
    fleet.deploy_first(name, 1)
    for revision in revisions:
        fleet.add_revision(name, revision)
        fleet.ask("activate_revision", deployment=name, revision=revision, actor="ann", reason=reason)
        fleet.wait_until_ready(name, revision, 1)


def newest(people: People, name: str) -> str:
    return str(read(people.engine, LAST, name)[0]["id"])


def seal_now(people: People, rollout: str) -> None:
    """As a worker does within a minute."""
    of = "SELECT deployment_id FROM rollouts WHERE id = %s"
    (deployment,) = (row["deployment_id"] for row in read(people.engine, of, rollout))
    in_transaction(people.engine, lambda connection: seal(connection, deployment, UUID(rollout)))


def forget(people: People, rollout: str) -> None:
    """As retention cuts its rows."""
    for table in ("routes", "deployment_history"):
        write(people.engine, f"UPDATE {table} SET rollout_id = NULL WHERE rollout_id = %s", rollout)
    write(people.engine, "DELETE FROM rollout_steps WHERE rollout_id = %s", rollout)
    write(people.engine, "DELETE FROM rollouts WHERE id = %s", rollout)


def rows(page: Page) -> list[str]:
    return page.get_by_role("region", name="Rollouts").locator(".past > li .revision").all_inner_texts()


def test_an_earlier_rollout_is_opened_by_keyboard_and_by_its_address_and_shows_waves_and_receipt(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    rolled(running_fleet, "older", "v2", "v3", reason=HARM)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/older")
    section = page.get_by_role("region", name="Rollouts")
    expect(section.get_by_text("completed")).to_have_count(2)
    assert rows(page) == ["v2 → v3", "v1 → v2"]
    expect(section.locator(".past > li").nth(1)).to_contain_text(HARM)

    section.get_by_role("link").nth(1).focus()
    page.keyboard.press("Enter")
    card = page.get_by_role("region", name=re.compile("Rollout: v1 → v2"))
    expect(card).to_contain_text(f"ann: “{HARM}”")
    expect(card.locator(".wave")).not_to_have_count(0)
    receipt = page.get_by_role("region", name="Receipt")
    expect(receipt).to_contain_text(re.compile(r"kept: promised at most \d live, measured at most \d live"))
    expect(receipt).to_contain_text(re.compile("are decided today as they were then"))
    expect(page).to_have_title("Rollout of older · Rollway")
    assert serious(page) == []
    assert fits(page)
    address = page.url
    page.go_back()
    expect(section.get_by_role("link")).to_have_count(2)
    assert fits(page)

    page.get_by_role("button", name="Log out").click()
    page.goto(address)
    page.get_by_label("Token").fill(server_beside_fleet.token(Role.VIEWER))
    page.get_by_role("button", name="Log in").click()
    expect(card).to_be_visible()
    assert page.url == address


def test_a_rollout_that_is_forgotten_is_shown_as_its_receipt_keeps_it(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    rolled(running_fleet, "forgotten", "v2", reason="ticket 7")
    rollout = newest(server_beside_fleet, "forgotten")
    seal_now(server_beside_fleet, rollout)
    page = log_in(
        context,
        server_beside_fleet.server.url,
        server_beside_fleet.token(Role.VIEWER),
        f"/deployments/forgotten/rollouts/{rollout}",
    )
    receipt = page.get_by_role("region", name="Receipt")
    expect(receipt).to_contain_text(re.compile("sha256 [0-9a-f]{64}"))
    waves = page.locator(".wave .did").all_inner_texts()
    forget(server_beside_fleet, rollout)

    page.reload()
    card = page.get_by_role("region", name=re.compile("Rollout: v1 → v2"))
    expect(card).to_contain_text("ticket 7")
    kept = card.locator(".wave .did").all_inner_texts()
    assert kept[0] == waves[0]
    assert serious(page) == []


def test_rollouts_that_only_receipts_keep_are_listed_after_those_that_have_rows(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    rolled(running_fleet, "kept", "v2", "v3", reason="ticket 8")
    last, first = (str(row["id"]) for row in read(server_beside_fleet.engine, LAST, "kept"))
    for rollout in (first, last):
        seal_now(server_beside_fleet, rollout)
    copies = """
        INSERT INTO receipts SELECT uuidv7(interval '-1 day' * s), deployment_id, 100 - s, text, sha256
          FROM receipts, generate_series(1, 25) s WHERE rollout_id = %s
    """
    write(server_beside_fleet.engine, copies, first)
    forget(server_beside_fleet, first)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/kept")
    section = page.get_by_role("region", name="Rollouts")
    listed = section.locator(".past > li")
    expect(listed).to_have_count(11)
    assert rows(page)[:2] == ["v2 → v3", "v1 → v2"]
    expect(listed.nth(1)).to_contain_text("ann: “ticket 8”")
    section.get_by_role("button", name="Earlier rollouts").click()
    expect(listed).to_have_count(27)
    expect(section.get_by_role("button", name="Earlier rollouts")).to_have_count(0)
    assert fits(page)
    page.locator(f".past a[href$='{first}']").click()
    expect(page.get_by_role("region", name=re.compile("Rollout: v1 → v2"))).to_contain_text("ticket 8")


def test_a_rollout_under_way_goes_on_on_its_page_and_a_new_one_is_listed_at_once(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    rolled(running_fleet, "moving", "v2")
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/moving"
    )
    expect(page.get_by_role("region", name="Rollouts").get_by_text("completed")).to_be_visible()
    running_fleet.add_revision("moving", "v3", STARTUP_SECONDS="3")
    running_fleet.activate("moving", "v3")
    expect(page.get_by_role("region", name="Rollouts").get_by_text("v2 → v3")).to_be_visible()
    # by keyboard: while the list grows, a row may move away between the two halves of a click
    page.get_by_role("region", name="Rollouts").get_by_role("link").first.press("Enter")
    expect(page).to_have_title("Rollout of moving · Rollway")
    card = page.get_by_role("region", name=re.compile("Rollout: v2 → v3"))
    expect(card.locator(".wave")).not_to_have_count(0)
    expect(card.get_by_role("heading")).to_contain_text("completed")
    expect(page.get_by_role("region", name="Receipt")).to_be_visible()


def test_many_rollouts_are_listed_a_page_at_a_time_and_another_deployments_is_not_shown(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    rolled(running_fleet, "many", "v2")
    rolled(running_fleet, "other", "v2")
    copies = """
        INSERT INTO rollouts SELECT (jsonb_populate_record(o, jsonb_build_object('id', place.id, 'is_sealed', true))).*
          FROM rollouts o, (SELECT uuidv7(interval '-1 day' * s) AS id FROM generate_series(1, 30) s) place
         WHERE o.id = %s
    """
    write(server_beside_fleet.engine, copies, newest(server_beside_fleet, "many"))
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER, "many"), "/deployments/many"
    )
    listed = page.get_by_role("region", name="Rollouts").locator(".past > li")
    expect(listed).to_have_count(10)
    page.get_by_role("button", name="Earlier rollouts").click()
    expect(listed).to_have_count(31)
    expect(page.get_by_role("button", name="Earlier rollouts")).to_have_count(0)
    for rollout, said in (
        (newest(server_beside_fleet, "other"), "sees no rollout"),
        (str(uuid4()), "there is no rollout"),
        ("%3Cb%3E", "must be the id of a rollout"),
    ):
        page.goto(f"{server_beside_fleet.server.url}/deployments/many/rollouts/{rollout}")
        expect(page.get_by_text(said)).to_be_visible()
