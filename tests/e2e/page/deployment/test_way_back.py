"""The way back on the live page: where it leads, in a freeze and after a rollback, and from each revision."""

import re

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from domain.installation.tokens import Role
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import SPEC, Made, ask, make_deployment, read, write

pytestmark = pytest.mark.e2e
FAILED = """
    INSERT INTO routes (deployment_id, revision_id, status, traffic_status, status_reason)
    SELECT deployment_id, id, 'failed', 'inactive', 'exit code 1' FROM revisions WHERE deployment_id = %s AND name = %s
"""
ROLLED_BACK = """
    INSERT INTO rollouts SELECT (jsonb_populate_record(o, jsonb_build_object(
           'id', uuidv7(), 'from_revision_id', o.to_revision_id, 'to_revision_id', v.id, 'outcome', 'rolled_back',
           'started_at', clock_timestamp(), 'ended_at', clock_timestamp(), 'back_reason', 'it failed'))).*
      FROM rollouts o, revisions v WHERE o.deployment_id = %s AND v.deployment_id = o.deployment_id AND v.name = 'v3'
"""


def rolled_back(people: People, name: str) -> Made:
    """v1 to v2 is through, and v3, which has only failed, went back by itself just now."""
    made = make_deployment(people.engine, "|■■■", name=name, status=PROVISIONING)
    write(people.engine, "UPDATE rollouts SET outcome = 'completed', ended_at = now() WHERE id = %s", made.rollout_id)
    rests = """
        UPDATE deployments SET lifecycle = 'ready', sub_step = NULL, rollout_id = NULL, deploying_revision_id = NULL,
               current_revision_id = %s WHERE id = %s
    """
    write(people.engine, rests, made.v2, made.id)
    write(people.engine, "UPDATE revisions SET spec = spec || '{\"grace_seconds\": 9}' WHERE id = %s", made.v2)
    ask(people.engine, "add_revision", deployment=name, name="v3", spec={**SPEC, "command": ["false"]})
    write(people.engine, FAILED, made.id, "v3")
    write(people.engine, ROLLED_BACK, made.id)
    return made


def opened(people: People, context: BrowserContext, name: str, role: Role = Role.ADMIN) -> Page:
    page = log_in(context, people.server.url, people.token(role), f"/deployments/{name}")
    expect(page.get_by_role("group", name="What you can do")).to_be_visible()
    return page


def frozen(people: People, name: str) -> None:
    window = {"starts_at": "2020-01-01T00:00:00Z", "ends_at": "2100-01-01T00:00:00Z"}
    ask(people.engine, "set_freeze", freeze=f"f-{name}", deployments=[name], reason="a sale", **window)


def dialog_of(page: Page) -> Locator:
    return page.get_by_role("dialog")


def test_after_a_rollback_and_in_a_freeze_undo_names_where_it_leads_and_goes_there(
    people_server: People, context: BrowserContext
) -> None:
    made = rolled_back(people_server, "back")
    frozen(people_server, "back")
    page = opened(people_server, context, "back", Role.OPERATOR)
    expect(page.get_by_text(re.compile("Frozen until Jan 1, 2100 by the freeze f-back: “a sale”"))).to_be_visible()
    page.get_by_role("button", name="Undo: back to v1 …").click()
    dialog = dialog_of(page)
    expect(dialog).to_contain_text("The last rollout is undone already, and v2 runs: go further back, to v1")
    expect(dialog.locator("#ask-plan")).to_contain_text("run the earlier revision")
    expect(dialog.locator("#ask-plan")).not_to_contain_text("new revision")
    dialog.get_by_label("Reason").fill("v2 is bad too")
    dialog.get_by_role("button", name="Undo: back to v1", exact=True).click()
    expect(page.get_by_role("heading", name=re.compile("Rollback: v2 → v1"))).to_be_visible()
    (row,) = read(people_server.engine, "SELECT deploying_revision_id FROM deployments WHERE id = %s", made.id)
    assert row["deploying_revision_id"] == made.v1


def test_a_missing_button_leaves_its_reason_and_the_way_past_a_freeze(
    people_server: People, context: BrowserContext
) -> None:
    rolled_back(people_server, "frozen")
    ask(people_server.engine, "add_revision", deployment="frozen", name="v4", spec={**SPEC, "command": ["true"]})
    frozen(people_server, "frozen")
    page = opened(people_server, context, "frozen")
    reasons = page.get_by_role("list", name="What you cannot do now")
    expect(reasons).to_contain_text("Roll out, New revision, Retry, Restart: frozen until 2100-01-01")
    assert serious(page) == []
    reasons.get_by_role("button", name="Roll out: ignore the freeze …").click()
    dialog = dialog_of(page)
    expect(dialog.get_by_label("Ignore freeze")).to_be_checked()
    expect(dialog.get_by_label("Revision")).to_have_value("v4")
    dialog.get_by_label("Reason").fill("it is urgent")
    dialog.get_by_role("button", name="Roll out v4").click()
    expect(page.get_by_role("heading", name=re.compile("Rollout: v2 → v4"))).to_be_visible()
    # a rollout under way has one way back, and says so where Undo was
    expect(page.get_by_role("button", name="Abort: back to v2 …")).to_be_visible()
    expect(reasons).to_contain_text("Undo: a rollout is under way, and Abort goes back to v2")
    assert fits(page)


def test_a_revision_that_has_only_failed_is_never_chosen_and_is_typed_by_whoever_takes_it(
    people_server: People, context: BrowserContext
) -> None:
    rolled_back(people_server, "failed")
    page = opened(people_server, context, "failed")
    page.get_by_role("button", name="Roll out …", exact=True).click()
    dialog = dialog_of(page)
    choice = dialog.get_by_label("Revision")
    expect(choice).to_have_value("")
    expect(choice.locator("option")).to_have_text(["Choose …", "v3, never started", "v1"])
    choice.select_option("v1")
    expect(dialog.get_by_role("button", name="Roll out v1")).to_be_visible()
    choice.select_option("v3")
    dialog.get_by_label("Reason").fill("once more")
    dialog.get_by_role("button", name="Roll out v3").click()
    expect(dialog).to_be_visible()
    typed = dialog.get_by_label("Type v3 to confirm")
    assert typed.evaluate("it => it.matches(':invalid')")
    assert serious(page) == []
    typed.fill("v3")
    dialog.get_by_role("button", name="Roll out v3").click()
    expect(page.get_by_role("heading", name=re.compile("Rollout: v2 → v3"))).to_be_visible()


def test_each_revision_has_its_way_there(people_server: People, context: BrowserContext) -> None:
    rolled_back(people_server, "rows")
    page = opened(people_server, context, "rows")
    rows = page.get_by_role("region", name="Revisions").locator(".revisions > li")
    expect(rows.nth(1).get_by_role("button", name="Roll")).to_have_count(0)
    expect(rows.nth(0).get_by_role("button", name="Roll out")).to_have_text("Roll out this …")
    dialog = dialog_of(page)
    rows.nth(0).get_by_role("button", name="Roll out").click()
    expect(dialog.get_by_label("Revision")).to_have_value("v3")
    expect(dialog.get_by_label("Type v3 to confirm")).to_be_visible()
    page.keyboard.press("Escape")
    rows.nth(2).get_by_role("button", name="Roll back to v1 …").click()
    expect(dialog.get_by_label("Revision", exact=True)).to_have_value("v1")
    expect(dialog.locator("#ask-plan")).to_contain_text("run the earlier revision")
    dialog.get_by_label("Reason").fill("as it was")
    dialog.get_by_role("button", name="Undo: back to v1", exact=True).click()
    expect(page.get_by_role("heading", name=re.compile("Rollback: v2 → v1"))).to_be_visible()


def test_who_may_do_little_is_told_which_role_it_takes(people_server: People, context: BrowserContext) -> None:
    rolled_back(people_server, "role")
    page = log_in(context, people_server.server.url, people_server.token(Role.VIEWER), "/deployments/role")
    reasons = page.get_by_role("list", name="What you cannot do now")
    expect(reasons).to_contain_text("Undo, Retry, Scale, Restart: needs the role releaser")
    expect(reasons).to_contain_text("Set policy, Set traffic, Set autoscaling, Destroy: needs the role admin")
    expect(page.get_by_role("group", name="What you can do")).to_have_count(0)
