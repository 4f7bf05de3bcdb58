"""The live page shows what fails, and what callers get of a new revision: any answer at all, and a judge's evidence."""

import json
import re

import pytest
from playwright.sync_api import BrowserContext, expect

from domain.installation.tokens import Role
from domain.strategies.builtin import parse_policy
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.rows.deployments import write
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e
CAREFUL = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}


def rolled_out(fleet: Fleet, name: str) -> None:
    """A deployment of one replica whose rollout from v1 to v2 is through."""
    fleet.deploy_first(name, 1, CAREFUL)
    fleet.add_revision(name, "v2")
    fleet.activate(name, "v2")
    fleet.wait_until_ready(name, "v2", 1)


def test_what_has_answered_nobody_yet_is_told_of_until_it_is_measured_no_longer(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    rolled_out(running_fleet, "proof")
    count = "UPDATE rollouts SET unanswered = %s FROM revisions WHERE revisions.id = to_revision_id AND name = 'v2'"
    write(server_beside_fleet.engine, count, 3)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/proof")
    fleet = context.new_page()
    fleet.goto(server_beside_fleet.server.url)
    row = fleet.get_by_role("row").filter(has_text="proof")
    said = "not proven yet: v2 has answered none of {} requests, and goes back at 20"
    for shown in (page, row):
        expect(shown.get_by_text(said.format(3))).to_be_visible()
    write(server_beside_fleet.engine, count, 5)  # nobody tells of it
    for shown in (page, row):
        expect(shown.get_by_text(said.format(5))).to_be_visible()
    write(server_beside_fleet.engine, "UPDATE rollouts SET ended_at = ended_at - interval '61 s' WHERE unanswered = 5")
    for shown in (page, row):
        expect(shown.get_by_text("not proven yet")).to_have_count(0)
    certified = """
        INSERT INTO certificates (deployment_id, kind, name, names, not_after, fault, due_at)
        SELECT id, 'acme', 'proof.example.com', '{proof.example.com}', '2031-02-03', 'the authority is away',
               '2031-01-01'
          FROM deployments WHERE name = 'proof'
    """
    write(server_beside_fleet.engine, certified)
    write(server_beside_fleet.engine, """UPDATE deployments SET rules = '{"tls": {}}' WHERE name = 'proof'""")
    page.reload()
    expect(page.get_by_text("Reached at proof, proof.localhost, /proof/")).to_contain_text(
        "certificate of proof.example.com until 2031-02-03: the authority is away"
    )


def test_the_evidence_of_a_judge_is_drawn_as_curves_and_said_in_words(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    rolled_out(running_fleet, "curves")
    of = "FROM deployments d WHERE d.id = deployment_id AND d.name = 'curves'"
    judged = parse_policy({"strategy": "canary", "spec": {"steps": ["20%"], "judge": {}}}).as_json()
    write(
        server_beside_fleet.engine,
        f"UPDATE rollouts SET strategy = 'canary', spec = %s {of}",
        json.dumps(judged["spec"]),
    )
    points = """
        INSERT INTO evidence_points
        SELECT o.id, o.started_at + s * interval '1 s', 2000, 20 * s, s, 80 * s, s / 2, 0.15 * s, 0.05 * s
          FROM generate_series(1, 40) s, rollouts o JOIN deployments d ON d.id = o.deployment_id AND d.name = 'curves'
    """
    write(server_beside_fleet.engine, points)
    page = log_in(
        context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/curves"
    )
    evidence = page.get_by_role("region", name="Evidence")
    for title, said in (
        ("Requests", "canary 800, control 3,200"),
        ("Failures", "canary 40, control 20"),
        ("Harm", "log e-value 6.0; it is aborted at 5.7"),
        ("Good enough", "log e-value 2.0; the step is over at 3.0"),
    ):
        drawing = evidence.get_by_role("img", name=title)
        expect(drawing).to_have_accessible_description(re.compile(f"Over 39 s: {said}"))
        lines = drawing.locator(".curve").all()
        dashes = {line.evaluate("it => getComputedStyle(it).strokeDasharray") for line in lines}
        assert len(dashes) == len(lines) == 2, "told apart without colours"
    assert serious(page) == []
    assert fits(page)


def test_what_callers_got_in_the_last_hour_is_drawn_as_curves_and_said_in_words(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    rolled_out(running_fleet, "asked")
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/asked")
    expect(page.get_by_role("heading", name="History")).to_be_visible()
    expect(page.get_by_role("region", name="Callers")).to_have_count(0)
    minutes = """
        INSERT INTO requests
        SELECT d.id, date_trunc('minute', clock_timestamp()) - s * interval '1 min', current_revision_id,
               6000, 0, 600, 60, ARRAY[6000, 0, 0, 660, 0, 0, 0, 0, 0, 0, 0, 0]
          FROM generate_series(-5, 50) s, deployments d WHERE d.name = 'asked'
    """
    write(server_beside_fleet.engine, minutes)
    callers = page.get_by_role("region", name="Callers")
    for title, said in (
        ("Requests a second", r"now [\d,]+"),
        ("Failures a second", r"now [\d.]+, and 4xx [\d.]+"),
        ("First byte, ms", "now p95 50 ms"),
    ):
        drawing = callers.get_by_role("img", name=title)
        expect(drawing).to_have_accessible_description(re.compile(f"Over .*: {said}"), timeout=30_000)
        lines = drawing.locator(".curve").all()
        dashes = {line.evaluate("it => getComputedStyle(it).strokeDasharray") for line in lines}
        assert len(dashes) == len(lines), "told apart without colours"
    assert serious(page) == []
    assert fits(page)
    write(server_beside_fleet.engine, "DELETE FROM requests")  # others count what fails


def unsound(fleet: Fleet, name: str) -> None:
    """A deployment whose replicas end at once."""
    fleet.ask("create_deployment", deployment=name, desired_replicas=1)
    fleet.ask("add_revision", deployment=name, name="v1", spec={"command": ["false"]})
    fleet.activate(name, "v1")


def test_what_fails_stands_above_the_others_and_is_counted_and_shown_alone(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("sound", 1)
    for name in ("unsound", "unwell"):
        unsound(running_fleet, name)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER))
    trouble, sound = page.get_by_role("region", name="In trouble"), page.get_by_role("link", name="sound", exact=True)
    expect(trouble.get_by_role("link")).to_have_text(["unsound", "unwell"])
    expect(trouble.get_by_text("scaling, failing")).to_have_count(2)
    both = page.get_by_role("group", name="Show only").get_by_role("button").first
    expect(both).to_have_text("2 failing")
    both.focus()
    page.keyboard.press("Enter")
    for _ in ("pressed", "loaded by its address"):
        expect(both).to_have_attribute("aria-pressed", "true")
        expect(trouble.get_by_role("link")).to_have_text(["unsound", "unwell"])
        expect(sound).to_be_hidden()
        page.reload()
    assert serious(page) == []
    running_fleet.ask("destroy", deployment="unwell")
    expect(both).to_have_text("1 failing")
    both.click()
    expect(sound).to_be_visible()
    running_fleet.ask("destroy", deployment="unsound")


def test_a_filter_without_a_match_says_so(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    unsound(running_fleet, "unlike")
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER))
    trouble, failing = page.get_by_role("region", name="In trouble"), page.get_by_role("button", name="1 failing")
    expect(trouble).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("so-much")
    expect(page.get_by_text("has “so-much” in its name, state, revision or reason")).to_be_visible()
    expect(trouble).to_be_hidden()
    page.keyboard.press("Control+A")
    page.keyboard.type("unlike")
    expect(trouble).to_be_visible()
    failing.click()
    running_fleet.ask("destroy", deployment="unlike")
    expect(page.get_by_text("None of “0 failing” has “unlike” in its name")).to_be_visible()
    page.get_by_role("searchbox").fill("")
    expect(page.get_by_text("is shown, since only “0 failing” is chosen")).to_be_visible()
    assert fits(page)


def test_requests_that_fail_are_the_first_thing_seen_with_their_revision_and_the_way_to_the_curve(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    rolled_out(running_fleet, "lossy")
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/deployments/lossy")
    fleet = context.new_page()
    fleet.goto(server_beside_fleet.server.url)
    losing = fleet.get_by_role("region", name="Losing requests").get_by_role("row").filter(has_text="lossy")
    expect(fleet.get_by_role("link", name="lossy")).to_be_visible()
    expect(losing).to_have_count(0)
    minutes = """
        INSERT INTO requests
        SELECT d.id, date_trunc('minute', clock_timestamp()) - s * interval '1 min', current_revision_id,
               975, 0, 0, 25, ARRAY[975, 0, 0, 25, 0, 0, 0, 0, 0, 0, 0, 0]
          FROM generate_series(-30, 50) s, deployments d WHERE d.name = 'lossy'
    """
    write(server_beside_fleet.engine, minutes)
    sentence = re.compile(r"[\d.]+ of [\d.]+ requests/s failed in the last 2 minutes \(2\.50%\): v2")
    expect(losing).to_contain_text(sentence, timeout=120_000)
    expect(losing).to_contain_text("losing requests")
    lost = page.get_by_text("Losing requests:")
    expect(lost).to_be_visible(timeout=120_000)
    expect(page.get_by_role("main").get_by_text(sentence)).to_be_visible()
    page.get_by_role("link", name="Curves").click()
    expect(page.get_by_role("heading", name="Callers")).to_be_in_viewport()
    for shown in (page, fleet):
        assert serious(shown) == []
        assert fits(shown)
    write(server_beside_fleet.engine, "DELETE FROM requests")
    expect(losing).to_have_count(0, timeout=120_000)
    expect(lost).to_have_count(0, timeout=120_000)
