"""A deployment is made of a template, without a line of YAML from memory; what is typed is never lost."""

import re
import sys

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from tests.support.people.browser import drop, fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.stack.stack import ROOT

pytestmark = pytest.mark.e2e
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
    dialog.get_by_label("Command").fill("python3 http_service.py")
    expect(plan).to_contain_text("http_service.py is a relative path")
    dialog.get_by_label("Command").fill(PROGRAM)
    dialog.get_by_label("Replicas").fill("1")
    text = dialog.get_by_label("Documents")
    expect(text).to_have_value(
        re.compile(rf"deployment: fresh\nreplicas: 1\nrevision:\n  command: {re.escape(PROGRAM)}\n")
    )
    expect(plan).to_contain_text("fresh: created, 1 replica wanted")
    expect(plan).not_to_contain_text("relative path")
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
