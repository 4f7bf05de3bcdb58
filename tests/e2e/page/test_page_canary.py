"""A judged canary on the live page: its verdict once, its curves beside the buttons, and a page that is not long."""

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from db.connection.transactions import database_now, transaction
from db.proxies.recorded_answers import record_interval
from domain.installation.tokens import Role
from domain.model.answer_counts import Answers, Interval
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.pictures.pictures import PROVISIONING
from tests.support.rows.deployments import Made, make_deployment, write

pytestmark = pytest.mark.e2e
CANARY = {"strategy": "canary", "spec": {"steps": ["20%", "50%"], "max_surge": 1, "judge": {}}}
TELEPHONE = {"width": 400, "height": 800}
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
    for said in ("24 of 966", "more successful responses needed", "the canary has 20 % of the requests"):
        assert shown.count(said) == 1, said
    assert serious(page) == []


def test_a_canary_is_at_most_3000_px_high_on_a_telephone(people_server: People, context: BrowserContext) -> None:
    judged(people_server, "short")
    page = opened(people_server, context, "short")
    page.set_viewport_size(TELEPHONE)
    page.wait_for_timeout(500)
    height = page.evaluate("document.documentElement.scrollHeight")
    print("HEIGHT", height)
    page.evaluate("console.log([...document.querySelectorAll('#deployment > *')].map(it => it.dataset.key + ' ' + it.offsetHeight).join(', '))")
    print(page.evaluate("[...document.querySelectorAll('#deployment > *')].map(it => (it.dataset.key ?? it.className) + ' ' + it.offsetHeight).join(', ')"))
    assert height <= LONGEST
    assert fits(page)
