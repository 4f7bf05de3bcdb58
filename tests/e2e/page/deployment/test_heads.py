"""What serves, how the last rollout ended, where it is reached, and what is left of it, as the live page says it."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from tests.e2e.page.deployment.test_way_back import opened, rolled_back
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People, serving_people
from tests.support.pictures.pictures import DESTROYED, READY
from tests.support.rows.deployments import SPEC, ask, make_deployment, write

pytestmark = pytest.mark.e2e
MOVED = """
    UPDATE deployments SET current_revision_id = %s, failed_starts = 3, last_failed_at = now(), failed_revision_id = %s
     WHERE id = %s
"""


def test_what_serves_is_said_where_it_is_not_what_should_run(people_server: People, context: BrowserContext) -> None:
    made = make_deployment(people_server.engine, "■■■", name="moved", status=READY, policy=None)
    write(people_server.engine, MOVED, made.v2, made.v2, made.id)
    page = log_in(context, people_server.server.url, people_server.token(Role.VIEWER))
    expect(page.get_by_role("row").filter(has_text="moved")).to_contain_text("v1 serves, v2 fails")
    page.get_by_role("link", name="moved").click()
    expect(page.locator(".head")).to_contain_text("v1 serves, v2 fails")


def test_a_rollback_is_on_the_list_and_in_the_head_with_its_revision(
    people_server: People, context: BrowserContext
) -> None:
    rolled_back(people_server, "trace")
    page = log_in(context, people_server.server.url, people_server.token(Role.VIEWER))
    row = page.get_by_role("row").filter(has_text="trace")
    expect(row).to_contain_text(re.compile("v2 v3 rolled back"))
    expect(row).to_contain_text("ready")
    assert serious(page) == []
    page.get_by_role("link", name="trace").click()
    expect(page.locator(".head")).to_contain_text("v3 rolled back")
    assert serious(page) == []
    assert fits(page)


def test_addresses_are_links_and_go_when_the_deployment_is_destroyed(
    people_server: People, context: BrowserContext, tmp_path: Path
) -> None:
    made = make_deployment(people_server.engine, "■■■", name="reached")
    ask(people_server.engine, "set_traffic", deployment="reached", hosts=["reached.localhost"], path_prefix="/reached/")
    environment = people_server.server.environment
    told = {"ROLLWAY_CALLERS_URL": "http://127.0.0.1:18090"}
    with serving_people(environment["DATABASE_URL"], environment["REDIS_URL"], tmp_path, **told) as people:
        page = log_in(context, people.server.url, people.token(Role.VIEWER), "/deployments/reached")
        links = page.locator(".reached a")
        expect(links).to_have_text(["http://reached.localhost:18090/", "http://127.0.0.1:18090/reached/"])
        expect(links.first).to_have_attribute("href", "http://reached.localhost:18090/")
        gone = "UPDATE deployments SET lifecycle = %s, version = version + 1 WHERE id = %s"
        write(people_server.engine, gone, DESTROYED.lifecycle.value, made.id)
        page.reload()
        expect(page.locator(".head")).to_contain_text("destroyed")
        expect(page.get_by_role("heading", name="Revisions")).to_be_visible()
        expect(links).to_have_count(0)
        expect(page.get_by_text("current", exact=True)).to_have_count(0)


def test_any_two_revisions_are_compared_the_difference_first_and_a_long_argument_is_folded(
    people_server: People, context: BrowserContext
) -> None:
    make_deployment(people_server.engine, "■■■", name="compared")
    spec = {**SPEC, "command": ["sleep", "x" * 10_000]}
    ask(people_server.engine, "add_revision", deployment="compared", name="v3", spec=spec)
    page = opened(people_server, context, "compared")
    row = page.get_by_role("region", name="Revisions").locator(".revisions > li").first
    row.locator("summary").first.click()
    expect(row.get_by_label("Compare v3 with")).to_have_value("v1")
    row.get_by_label("Compare v3 with").select_option("v2")
    expect(row.get_by_label("Compare v3 with")).to_have_value("v2")
    expect(row.locator(".difference del")).to_contain_text("command: sleep 60")
    headings = row.get_by_role("heading").all_inner_texts()
    assert [heading.split()[0] for heading in headings] == ["Compared", "Contents,"]
    folded = row.locator(".content .long summary")
    expect(folded).to_contain_text("10006 letters")
    assert row.evaluate("it => it.offsetHeight") < 900
    folded.click()
    expect(row.locator(".content .long")).to_contain_text("x" * 10_000)
    assert serious(page) == []
    assert fits(page)


def test_a_receipt_has_readable_labels_and_its_json(people_server: People, context: BrowserContext) -> None:
    rolled_back(people_server, "kept")
    page = opened(people_server, context, "kept")
    page.get_by_role("region", name="Rollouts").get_by_role("link").first.click()
    receipt = page.get_by_role("region", name="Receipt")
    expect(receipt).to_contain_text("Each step decided again")
    expect(receipt).to_contain_text("not measured: no proxy told what it has answered")
    with page.expect_download() as download:
        receipt.get_by_role("link", name="Download JSON").click()
    assert json.loads(download.value.path().read_text())["receipt"]["deployment"] == "kept"
    assert serious(page) == []


def test_the_log_of_the_replica_that_failed_is_one_click_from_its_rollout_and_stands_where_it_was_opened(
    people_server: People, context: BrowserContext
) -> None:
    made = rolled_back(people_server, "boom")
    told = """
        UPDATE routes SET host = 'here', log_tail = 'first line\nboom: no such table\nlast line'
         WHERE deployment_id = %s AND status = 'failed'
    """
    write(people_server.engine, told, made.id)
    count = (
        "UPDATE rollouts SET failed_routes = 1, last_failure = 'exit code 1' WHERE deployment_id = %s AND outcome = %s"
    )
    write(people_server.engine, count, made.id, "rolled_back")
    page = opened(people_server, context, "boom")
    page.get_by_role("button", name="Log of the replica that failed").click()
    log = page.get_by_role("region", name="Log of")
    expect(log).to_contain_text("boom: no such table")
    page.get_by_label("Show only lines with").fill("table")
    expect(log).to_have_text("boom: no such table")
    page.get_by_role("button", name="Wrap lines").click()
    assert log.evaluate("it => getComputedStyle(it).whiteSpace") == "pre"
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.path().read_text() == "first line\nboom: no such table\nlast line"
    assert serious(page) == []
    assert fits(page)

    page.get_by_role("region", name="Rollouts").get_by_role("link").first.click()
    page.get_by_role("link", name="Log of the replica that failed").click()
    expect(log).to_contain_text("boom: no such table")
    page.get_by_role("button", name="Close").click()
    live = page.locator(".route").nth(1)
    live.get_by_role("button", name="Log of").click()
    expect(page.locator(".routes > li").nth(2).get_by_role("heading", name="Log of")).to_be_visible()
