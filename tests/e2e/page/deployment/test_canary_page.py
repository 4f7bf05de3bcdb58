"""A judged canary on the live page: its verdict once, its curves beside the buttons, and a page that is not long."""

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from db.connection.transactions import database_now, transaction
from db.proxies.recorded_answers import record_interval
from domain.installation.tokens import Role
from domain.model.answer_counts import Answers, Interval
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import Made, make_deployment, read, write
from tests.support.stack.stack import Fleet

pytestmark = pytest.mark.e2e
CANARY = {"strategy": "canary", "spec": {"steps": ["20%", "50%"], "max_surge": 1, "judge": {}}}
JUDGE = {"at_least": {"seconds": 120}}
SLOWLY = {"strategy": "canary", "spec": {"steps": ["20%", "50%"], "max_surge": 1, "judge": JUDGE}}
LONGEST = 3000
POINTS = """
    INSERT INTO evidence_points
    SELECT id, started_at + s * interval '1 s', 2000, 20 * s, s, 80 * s, s / 2, 0.15 * s, 0.05 * s
      FROM generate_series(1, 40) s, rollouts WHERE id = %s
"""
WEIGHS = """
    UPDATE rollouts SET stage = 1, weight = 2000, weight_known_at = clock_timestamp() - interval '60 s' WHERE id = %s
"""
RECORDS = """
    INSERT INTO deployment_history (deployment_id, phase, result, target, message, actor)
    SELECT %s, 'scale', 'success', '', 'from 3 to 4 replicas: more people', 'ann' FROM generate_series(1, 40)
"""
MINUTES = """
    INSERT INTO requests
    SELECT %s, date_trunc('minute', clock_timestamp()) - s * interval '1 min', %s, 6000, 0, 600, 60,
           ARRAY[6000, 0, 0, 660, 0, 0, 0, 0, 0, 0, 0, 0]
      FROM generate_series(-5, 50) s
"""


def judged(people: People, name: str) -> Made:
    """A canary of one replica beside three, with answers of both sides."""
    made = make_deployment(people.engine, "■■■|■", name=name, status=PROVISIONING, policy=CANARY)
    assert made.rollout_id
    write(people.engine, WEIGHS, made.rollout_id)
    write(people.engine, POINTS, made.rollout_id)
    answers = {made.v1: Answers(948, 19, begun=948), made.v2: Answers(966, 24, begun=966)}
    with transaction(people.engine) as connection:
        record_interval(connection, made.rollout_id, Interval(1, database_now(connection), 1.0, answers, 1, 1), {})
    write(people.engine, RECORDS, made.id)
    write(people.engine, MINUTES, made.id, made.v1)
    return made


def opened(people: People, context: BrowserContext, name: str) -> Page:
    page = log_in(context, people.server.url, people.token(Role.ADMIN), f"/deployments/{name}")
    expect(page.get_by_role("region", name="Evidence")).to_be_visible()
    expect(page.get_by_role("region", name="Callers")).to_be_visible()
    return page


def test_a_running_canary_shows_its_curves_right_under_its_buttons(
    people_server: People, context: BrowserContext
) -> None:
    judged(people_server, "curves")
    page = opened(people_server, context, "curves")
    expect(page.get_by_role("button", name="Abort: back to v1 …")).to_be_in_viewport()
    expect(page.get_by_role("img", name="Good enough")).to_be_in_viewport()
    expect(page.locator(".why .evidence").first).to_have_text(
        "Failures: canary 2.5 % (24 of 966), control 2 % (19 of 948), 1.2 times as often, not decided; "
        "refusals and redirections: none of 966, good."
    )
    shown = page.locator("#deployment").inner_text()
    for said in ("1.2 times as often", "more successful responses needed", "the canary has 20 % of the requests"):
        assert shown.count(said) == 1, said
    captions = page.locator("figcaption").all_inner_texts()
    assert any("canary control canary 800, control 3,200" in " ".join(caption.split()) for caption in captions)
    assert serious(page) == []


def test_the_dialog_of_a_promotion_has_its_buttons_in_view_and_says_nothing_of_proxies(
    people_server: People, context: BrowserContext
) -> None:
    judged(people_server, "promoted")
    page = opened(people_server, context, "promoted")
    page.get_by_role("button", name="Promote …").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("#ask-plan li")).not_to_have_count(0)
    dialog.get_by_text("More", exact=True).click()
    page.set_viewport_size({"width": 1280, "height": 600})
    for button in ("Promote promoted", "Cancel"):
        expect(dialog.get_by_role("button", name=button)).to_be_in_viewport(ratio=1)
    assert dialog.evaluate("it => it.scrollHeight > it.clientHeight"), "it is higher than the window"
    expect(dialog.locator("#ask-plan li").filter(has_text="proxy")).to_have_count(0)


def test_a_canary_is_at_most_3000_px_high_on_a_telephone(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("short", 3, SLOWLY)
    running_fleet.add_revision("short", "v2")
    running_fleet.activate("short", "v2")
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN), "/deployments/short")
    for said in ("must acknowledge 0 %", "must acknowledge 20 %"):
        expect(page.locator("#deployment > .why")).to_contain_text(said)
        write(server_beside_fleet.engine, "UPDATE rollouts SET weight_known_at = clock_timestamp()")  # no proxy is here
        write(server_beside_fleet.engine, "UPDATE deployments SET due_at = clock_timestamp()")
    expect(page.get_by_text("the canary has 20 % of the requests")).to_be_visible()
    # waves that take no time are one row, and a planned time that has passed is not told
    coming = page.locator(".wave.coming")
    expect(coming.first).to_contain_text("2 waves planned, waits for its judge", timeout=60_000)
    expect(coming.first.locator(".offset")).to_contain_text("≈ +2 min")
    page.evaluate("(real => { Date.now = () => real() + 150_000; })(Date.now.bind(Date))")
    expect(coming.first.locator(".offset")).to_be_empty()
    expect(coming.last.locator(".offset")).to_contain_text("≈ +4 min")
    query = "SELECT id, rollout_id, current_revision_id AS v1 FROM deployments WHERE name = 'short'"
    (made,) = read(server_beside_fleet.engine, query)
    write(server_beside_fleet.engine, POINTS, made["rollout_id"])
    write(server_beside_fleet.engine, RECORDS, made["id"])
    write(server_beside_fleet.engine, MINUTES, made["id"], made["v1"])
    page.set_viewport_size({"width": 400, "height": 800})
    page.reload()
    expect(page.get_by_role("region", name="Evidence")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("region", name="Callers")).to_be_visible()
    planned = page.locator("summary").filter(has_text=re.compile(r"\d+ waves planned"))
    expect(planned).to_be_visible()
    assert page.evaluate("document.documentElement.scrollHeight") <= LONGEST
    page.get_by_role("region", name="History").get_by_text("older").click()
    expect(page.get_by_text("from 3 to 4 replicas: more people").last).to_be_visible()
    planned.click()
    assert fits(page)
    assert serious(page) == []
