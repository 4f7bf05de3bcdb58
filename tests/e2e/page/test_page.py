"""The live page in a real browser, over real workers, replicas and Postgres."""

import json
import re
import sys
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from tests.support.people.browser import drop, fits, log_in, look_at, press, serious
from tests.support.people.people_api import People
from tests.support.rows.deployments import write
from tests.support.stack.stack import ROOT, Fleet

pytestmark = pytest.mark.e2e
CAREFUL = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": False}}


def test_a_rollout_is_begun_paused_resumed_and_undone_and_the_page_shows_each(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("shop", 2, CAREFUL)
    running_fleet.add_revision("shop", "v2", STARTUP_SECONDS="8")
    page = log_in(
        context,
        server_beside_fleet.server.url,
        server_beside_fleet.token(Role.OPERATOR, name="ann"),
        "/deployments/shop",
    )

    press(page, "Roll out", "ticket 7", Revision="v2")
    expect(page.get_by_role("heading", name=re.compile("Rollout: v1 → v2"))).to_be_visible()
    press(page, "Pause", "looking at the logs")
    expect(page.get_by_text("Waits for you to resume it.")).to_be_visible()
    press(page, "Resume", "all is well")
    running_fleet.wait_until_ready("shop", "v2", 2)
    expect(page.get_by_role("region", name="v2 completed")).to_contain_text(re.compile("waves in(?s:.*)no proxy told"))
    press(page, "Undo", "it is slow")
    running_fleet.wait_until_ready("shop", "v1", 2)
    expect(page.get_by_role("heading", name=re.compile("Rollback: v2 → v1"))).to_be_visible()
    history = page.get_by_role("region", name="History")
    for reason in ("ticket 7", "looking at the logs", "it is slow"):
        expect(history.get_by_text(reason)).to_be_visible()
    expect(history.get_by_text("ann").first).to_be_visible()
    expect(history.locator(".record time:visible").first).to_have_text(re.compile(r"\d:\d\d"))
    expect(history.locator(".phase").get_by_text("rollout", exact=True).first).to_be_visible()
    expect(history.locator(".phase").get_by_text("deploying")).to_have_count(0)


def test_what_waits_for_a_person_stands_on_top_and_is_promoted_and_the_next_one_aborted(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("blue", 1, BLUE_GREEN)
    running_fleet.deploy_first("alpha", 1, CAREFUL)
    for revision in ("v2", "v3"):
        running_fleet.add_revision("blue", revision)
    fleet = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR, name="bob"))
    expect(fleet.get_by_role("link", name="alpha")).to_be_visible()
    running_fleet.activate("blue", "v2")
    waiting = fleet.get_by_role("region", name="Waiting for you")
    expect(waiting.get_by_role("img", name="old: 1 healthy; new: 1 healthy, without traffic")).to_be_visible()

    waiting.get_by_role("link", name="blue").click()
    press(fleet, "Promote", "the look was good")
    running_fleet.wait_until_ready("blue", "v2", 1)
    press(fleet, "Roll out", "ticket 8", Revision="v3")
    expect(fleet.get_by_text("Waits for you to promote it.")).to_be_visible()
    press(fleet, "Abort", "not today")
    running_fleet.wait_until_ready("blue", "v2", 1)
    expect(fleet.get_by_text("rolled back", exact=True).first).to_be_visible()


def test_what_comes_with_a_rollout_is_shown_with_the_moment(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("moved", 1, BLUE_GREEN)
    running_fleet.add_revision("moved", "v2")
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/moved")
    reached = page.locator(".reached")
    expect(reached).to_contain_text("moved.localhost")
    running_fleet.activate("moved", "v2")
    running_fleet.ask("set_traffic", deployment="moved", hosts=["new.example.com"], with_rollout=True)
    expect(reached).to_contain_text("; with the promotion new.example.com")
    running_fleet.ask("abort", deployment="moved")
    running_fleet.wait_until_ready("moved", "v1", 1)
    expect(reached).not_to_contain_text("promotion")


def test_a_file_is_dropped_looked_at_and_applied_and_its_deployment_updated_and_set_on_the_page(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    program = f"{sys.executable} {ROOT / 'examples' / 'http_service.py'}"
    spec = {"name": "v1", "command": program, "health_check": {"path": "/health", "interval_seconds": 0.2}}
    text = f"deployment: dropped\nreplicas: 1\nrevision: {json.dumps(spec)}\npolicy: {json.dumps(BLUE_GREEN)}"
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="eve"))
    dialog = page.get_by_role("dialog")
    page.get_by_role("button", name="Apply").click()
    drop(page, dialog.get_by_label("Documents"), "web.yaml", text)
    expect(dialog.locator("#ask-plan")).to_contain_text("dropped: created, 1 replica wanted")
    dialog.get_by_label("Reason").fill("the first one")
    dialog.locator("#ask-do").click()
    page.get_by_role("status").get_by_role("link", name="dropped").click()
    expect(page.get_by_text("1/1 serving")).to_be_visible()
    press(page, "New revision …", "a newer one", Command=f"{program} again", Revision="v2")
    expect(page.get_by_text("Waits for you to promote it.")).to_be_visible()
    press(page, "Promote", "looks good")
    running_fleet.wait_until_ready("dropped", "v2", 1)
    page.get_by_role("button", name="Set policy …").click()
    strategy = dialog.get_by_label("Strategy")
    expect(strategy).to_have_value("blue_green")
    strategy.select_option("rolling_update")
    surge = dialog.get_by_label("Max surge", exact=True).locator("visible=true")
    surge.fill("much")
    dialog.get_by_label("Reason").fill("carefully")
    dialog.locator("#ask-do").click()
    expect(page.locator("#ask-wrong")).to_contain_text("policy.spec.max_surge: must be a whole number of replicas")
    surge.fill("25%")
    dialog.locator("#ask-do").click()
    page.get_by_role("button", name="Set policy …").click()
    expect(strategy).to_have_value("rolling_update")
    expect(surge).to_have_value("25%")
    assert serious(page) == []


def test_ten_tabs_share_one_stream_and_each_is_up_to_date(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("tabs", 1, CAREFUL)
    first = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER))
    streams: list[str] = []
    context.on("request", lambda request: streams.append(request.url) if "/v1/events" in request.url else None)
    tabs = [first, *(context.new_page() for _ in range(9))]
    for tab in tabs[1:]:
        tab.goto(server_beside_fleet.server.url)
        tab.get_by_text("live", exact=True).wait_for()
    running_fleet.ask("scale", deployment="tabs", desired_replicas=2)
    for tab in tabs:
        row = tab.get_by_role("row").filter(has_text="tabs")
        expect(row.get_by_text("2/2")).to_be_visible()
    assert streams == []


def test_focus_and_selection_survive_updates_and_a_page_that_was_away_catches_up(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("focus", 1, CAREFUL)
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR), "/deployments/focus"
    )
    scale = page.get_by_role("button", name="Scale")
    scale.focus()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.route code'))")
    selected = page.evaluate("String(getSelection())")
    running_fleet.ask("scale", deployment="focus", desired_replicas=2)
    expect(page.get_by_text("2/2 serving")).to_be_visible()
    expect(scale).to_be_focused()
    assert page.evaluate("String(getSelection())") == selected

    look_at(page, "hidden")
    running_fleet.ask("scale", deployment="focus", desired_replicas=1)
    running_fleet.wait_until_ready("focus", "v1", 1)
    expect(page.get_by_text("2/2 serving")).to_be_visible()
    look_at(page, "visible")
    expect(page.get_by_text("1/1 serving")).to_be_visible()

    server_beside_fleet.server.end(kill=True)
    expect(page.get_by_text("no connection since")).to_be_visible()
    running_fleet.ask("scale", deployment="focus", desired_replicas=3)
    server_beside_fleet.server.start()
    expect(page.get_by_text("3/3 serving")).to_be_visible()
    expect(page.get_by_text("live", exact=True)).to_be_visible()


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext, colours: Literal["light", "dark"]
) -> None:
    running_fleet.deploy_first(f"axe-{colours}", 2, CAREFUL)
    running_fleet.add_revision(f"axe-{colours}", "v2", STARTUP_SECONDS="60")
    running_fleet.activate(f"axe-{colours}", "v2")
    page = context.new_page()
    page.emulate_media(color_scheme=colours)
    page.goto(f"{server_beside_fleet.server.url}/login")
    found = [serious(page)]
    page.get_by_label("Token").fill(server_beside_fleet.token(Role.OPERATOR))
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name=f"axe-{colours}").wait_for()
    found.append(serious(page))
    page.get_by_role("link", name=f"axe-{colours}").click()
    page.get_by_text("create 1").first.wait_for()
    found.append(serious(page))
    page.get_by_role("button", name="Abort").click()
    found.append(serious(page))
    assert found == [[]] * 4
    assert fits(page)
    page.keyboard.press("Escape")
    assert fits(page)
    page.get_by_role("link", name="Deployments").click()
    page.get_by_role("link", name=f"axe-{colours}").wait_for()
    assert fits(page)


def test_a_sick_replica_that_answers_callers_is_told_from_one_that_does_not(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("busy", 1, CAREFUL)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/busy")
    (replica,) = running_fleet.replica_processes("busy")
    replica.suspend()  # it answers no probe
    status = page.locator(".route .status")
    expect(status).to_have_text("unhealthy")
    write(
        server_beside_fleet.engine,
        "UPDATE routes SET kept_until = clock_timestamp() + interval '1 minute' WHERE status = 'unhealthy'",
    )
    running_fleet.ask("scale", deployment="busy", desired_replicas=1)
    expect(status).to_have_text("unhealthy, but answering")
    replica.kill()
