"""A deployment is made of a template, without a line of YAML from memory; what is typed is never lost."""

import re
import sys

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from domain.installation.tokens import Role
from tests.support.people.browser import drop, fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.rows.deployments import read
from tests.support.stack.stack import ROOT, Fleet

pytestmark = pytest.mark.e2e
CAREFUL = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
PROGRAM = f"{sys.executable} {ROOT / 'examples' / 'http_service.py'}"


def test_a_service_is_made_of_a_template_by_its_fields_and_serves(
    server_beside_fleet: People, context: BrowserContext
) -> None:
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="eve"))
    dialog, plan = page.get_by_role("dialog"), page.locator("#ask-plan")
    page.get_by_role("button", name="New deployment").click()
    expect(dialog.get_by_label("Template")).to_be_focused()
    expect(plan).to_contain_text("created, 2 replicas wanted")
    dialog.get_by_label("Name").fill("fresh")
    dialog.get_by_role("textbox", name="Command").fill("python3 http_service.py")
    expect(plan).to_contain_text("http_service.py is a relative path")
    dialog.get_by_role("textbox", name="Command").fill(PROGRAM)
    dialog.get_by_label("Replicas").fill("1")
    text = dialog.get_by_label("Documents")
    expect(text).to_have_value(
        re.compile(rf"deployment: fresh\nreplicas: 1\nrevision:\n  command: {re.escape(PROGRAM)}\n")
    )
    expect(plan).to_contain_text("fresh: created, 1 replica wanted")
    expect(plan).not_to_contain_text("relative path")
    assert serious(page) == []
    page.emulate_media(color_scheme="dark")
    assert serious(page) == []
    assert fits(page)
    dialog.get_by_label("Reason").fill("the first one")
    dialog.locator("#ask-do").click()
    page.get_by_role("status").get_by_role("link", name="fresh").click()
    expect(page.get_by_text("1/1 serving")).to_be_visible()


def test_each_template_is_a_whole_file_that_keeps_what_was_filled_in(
    server_beside_fleet: People, context: BrowserContext
) -> None:
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN))
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="New deployment").click()
    dialog.get_by_label("Name").fill("no")
    template, text = dialog.get_by_label("Template"), dialog.get_by_label("Documents")
    for label, has in (("Container", "image: "), ("Canary", "judge: {}"), ("Celery worker", "drain: fixed")):
        template.select_option(label=label)
        expect(text).to_have_value(re.compile(rf'^deployment: "no"\n(.*\n)*.*{has}'))
        expect(page.locator("#ask-plan")).to_contain_text("no: created")
        expect(page.locator("#ask-plan .warning").filter(has_text="policy")).to_have_count(0)
    text.fill(text.input_value().replace("replicas: 2", "replicas: many"))
    expect(page.locator("#ask-wrong")).to_have_text("document 1, line 2, replicas: must be a whole number, such as 3")
    expect(dialog.get_by_label("Replicas")).to_have_value("")


def test_a_text_that_was_pasted_outlives_escape_and_cancel_until_it_is_sent(
    server_beside_fleet: People, context: BrowserContext
) -> None:
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN))
    dialog, apply = page.get_by_role("dialog"), page.get_by_role("button", name="Apply …")
    apply.click()
    documents = dialog.get_by_label("Documents")
    drop(page, documents, "two.yaml", "deployment: kept-a\n---\ndeployment: kept-b\n")
    page.keyboard.press("Escape")
    apply.click()
    expect(documents).to_have_value(re.compile("kept-b"))
    dialog.get_by_role("button", name="Cancel").click()
    apply.click()
    expect(documents).to_have_value(re.compile("kept-b"))
    dialog.get_by_label("Reason").fill("both")
    dialog.locator("#ask-do").click()
    made = page.get_by_role("status").filter(has_text="is made")
    expect(made.get_by_role("link")).to_have_text(["kept-a", "kept-b"])
    apply.click()
    expect(documents).to_have_value("")
    dialog.get_by_label("Documents").fill("deployment: x")
    page.keyboard.press("Escape")
    apply.click()
    dialog.get_by_role("button", name="Begin again").click()
    expect(documents).to_have_value("")


def test_a_new_revision_begins_as_another_and_values_that_nobody_sees_stay_what_they_are(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.ask("create_deployment", deployment="varied", policy=CAREFUL)
    running_fleet.add_revision("varied", "v1", KEEP="secret-1", CHANGE="old", GONE="x")
    running_fleet.activate("varied", "v1")
    running_fleet.wait_until_ready("varied", "v1", 1)
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR), "/deployments/varied"
    )
    dialog, plan = page.get_by_role("dialog"), page.locator("#ask-plan")
    page.get_by_role("button", name="New revision from v1 …").click()
    expect(dialog.get_by_role("heading")).to_contain_text("New revision from v1")
    expect(plan).to_have_text("Nothing differs from v1 yet.")
    expect(page.locator("#ask-wrong")).to_have_text("")
    expect(dialog.get_by_role("textbox", name="Command")).to_have_value(re.compile("http_service"))
    expect(dialog.get_by_label("Value of KEEP")).to_have_attribute("placeholder", "unchanged")
    dialog.get_by_label("Value of CHANGE").fill("new")
    dialog.get_by_role("button", name="Remove GONE").click()
    dialog.get_by_role("button", name="Add variable").click()
    row = dialog.locator(".variables tbody tr").last
    row.get_by_label("Name").fill("MORE")
    row.get_by_label("Value").fill("a 'b' # c: d")
    dialog.get_by_label("Revision").fill("v2")
    expect(plan).to_contain_text("never more than")
    page.emulate_media(color_scheme="dark")
    assert serious(page) == []
    assert fits(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="New revision from v1 …").click()
    expect(dialog.get_by_label("Value of CHANGE")).to_have_value("new")
    dialog.get_by_label("Reason").fill("ticket 9")
    dialog.locator("#ask-do").click()
    running_fleet.wait_until_ready("varied", "v2", 1)
    query = (
        "SELECT r.spec FROM revisions r JOIN deployments d ON d.id = r.deployment_id WHERE d.name = %s ORDER BY r.id"
    )
    before, after = (row["spec"] for row in read(server_beside_fleet.engine, query, "varied"))
    assert after["env"] == {"KEEP": "secret-1", "CHANGE": "new", "MORE": "a 'b' # c: d"}
    assert {**after, "env": None} == {**before, "env": None}


def save(page: Page) -> None:
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Reason").fill("to see")
    dialog.locator("#ask-do").click()
    expect(dialog).to_be_hidden()


def test_each_rule_of_autoscaling_is_a_part_of_its_form(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("ruled", 1, CAREFUL)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN), "/deployments/ruled")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Set autoscaling").click()
    dialog.get_by_role("button", name="Add rule").click()
    for label, value in (("Metric", "queue"), ("Threshold", "10.5"), ("Step", "1"), ("Max replicas", "4")):
        dialog.get_by_label(label).fill(value)
    save(page)
    page.get_by_role("button", name="Set autoscaling").click()
    for label, value in (("Metric", "queue"), ("Threshold", "10.5"), ("Max replicas", "4")):
        expect(dialog.get_by_label(label)).to_have_value(value)
    dialog.get_by_role("button", name="Remove").click()
    save(page)
    page.get_by_role("button", name="Set autoscaling").click()
    expect(dialog.get_by_role("button", name="Add rule")).to_be_visible()
    expect(dialog.get_by_label("Threshold")).to_have_count(0)


def test_a_policy_has_the_fields_of_its_strategy_and_traffic_what_is_set_on_top(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("formed", 1, CAREFUL)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN), "/deployments/formed")
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Set policy").click()
    dialog.get_by_label("Strategy").select_option("canary")
    dialog.get_by_label("Judge", exact=True).locator("visible=true").check()
    dialog.get_by_role("button", name="Remove").last.click()
    assert serious(page) == []
    save(page)
    page.get_by_role("button", name="Set policy").click()
    expect(dialog.get_by_label("Strategy")).to_have_value("canary")
    expect(dialog.get_by_label("Weight").locator("visible=true")).to_have_count(2)
    dialog.get_by_label("Policy", exact=True).uncheck()
    save(page)
    page.get_by_role("button", name="Set policy").click()
    expect(dialog.get_by_label("Policy", exact=True)).not_to_be_checked()
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Set traffic").click()
    expect(dialog.get_by_label("Hosts")).to_be_focused()
    expect(dialog.get_by_label("Hold", exact=False).locator("visible=true")).to_have_count(0)
    dialog.get_by_text("More", exact=True).locator("visible=true").click()
    dialog.get_by_label("Sticky").check()
    dialog.get_by_label("Cookie").fill("who")
    save(page)
    page.get_by_role("button", name="Set traffic").click()
    expect(dialog.get_by_label("Cookie")).to_have_value("who")
