"""Hosts on the live page: whether each is seen, what runs there, and what is wrong with it."""

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from domain.devices.needs import parse_resources
from domain.installation.tokens import Role
from tests.support.people.browser import fits, log_in, serious
from tests.support.people.people_api import People
from tests.support.rows.deployments import write
from tests.support.rows.hosts import says
from tests.support.stack.stack import Fleet, service

pytestmark = pytest.mark.e2e
HARM = "<img src=x onerror=\"document.title='harm'\">"


def test_a_host_is_seen_drained_silent_and_down_and_its_clock_and_its_name_are_text(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("placed", 2)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER))
    page.get_by_role("link", name="Hosts").focus()
    page.keyboard.press("Enter")
    here = page.locator(".host").filter(has_text="here")
    expect(here).to_contain_text("up")
    for fact in ("replicas: 2 healthy", "seen", "clock in sync", "protocol"):
        expect(here).to_contain_text(fact)

    running_fleet.start_workers("far", host="far-away")
    far = page.locator(".host").filter(has_text="far-away")
    expect(far).to_contain_text("replicas: none")
    running_fleet.ask("drain_host", host="here", actor="ann")
    expect(here).to_contain_text("drained by ann")
    running_fleet.kill("far")
    expect(far.locator(".badge")).to_have_text("silent")
    expect(far.locator(".badge")).to_have_text("down", timeout=60_000)
    expect(page.locator(".host").first).to_contain_text("far-away")
    write(
        server_beside_fleet.engine,
        "UPDATE hosts SET name = %s, clock_offset_seconds = -75 WHERE name = 'far-away'",
        HARM,
    )
    harm = page.locator(".host").filter(has_text=HARM)
    expect(harm).to_contain_text("clock 1 min 15 s behind")
    expect(page).to_have_title("Hosts · Rollway")
    assert serious(page) == []
    assert fits(page)
    page.emulate_media(color_scheme="dark")
    assert serious(page) == []


def test_devices_are_listed_with_the_deployments_that_hold_them_and_what_others_use(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.start_workers("gpus", host="gpu-1", ROLLWAY_HOST_RESOURCES="gpu=2,memory_gb=80")
    spec = {**service(), "needs": {"gpu": 1, "memory_gb": 30}}
    running_fleet.ask("create_deployment", deployment="model", desired_replicas=1)
    running_fleet.ask("add_revision", deployment="model", name="v1", spec=spec)
    running_fleet.activate("model", "v1")
    running_fleet.wait_until_ready("model", "v1", 1)
    used = {"gpu": {"GPU-77aa": 11.2}}
    resources = parse_resources("gpu=GPU-5d6f+GPU-77aa")
    says(server_beside_fleet.engine, "gpu-2", resources=resources, memory_of_others=used)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER), "/hosts")
    held, others = (page.locator(".host").filter(has_text=name) for name in ("gpu-1", "gpu-2"))
    expect(held).to_contain_text("gpu 1 of 2: 0 model; memory_gb 30 of 80: model")
    expect(others).to_contain_text("gpu 0 of 2")
    expect(others).to_contain_text("device GPU-77aa: 11 GB used by no replica")
    expect(held).not_to_contain_text("used by no replica")
    assert serious(page) == []
    assert fits(page)
    running_fleet.kill("gpus")


def test_who_may_see_some_deployments_alone_sees_no_hosts(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.deploy_first("mine", 1)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.VIEWER, "mine"))
    expect(page.get_by_role("link", name="mine")).to_be_visible()
    expect(page.get_by_role("link", name="Hosts")).to_have_count(0)
    page.goto(f"{server_beside_fleet.server.url}/hosts")
    expect(page.locator("#hosts .why")).to_be_visible()
    expect(page.locator(".host")).to_have_count(0)


def test_a_host_is_emptied_used_again_and_forgotten_beside_its_name_and_a_refusal_is_told(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.start_workers("spare", host="spare")
    running_fleet.start_workers("gone", host="gone")
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="eve"), "/hosts")
    spare, gone = (page.locator(".host").filter(has_text=name) for name in ("spare", "gone"))
    expect(spare.get_by_role("button")).to_have_text(["Drain …"])
    answer(page, spare, "Drain")
    expect(spare).to_contain_text("drained by eve")
    expect(spare.get_by_role("button")).to_have_text(["Put back in service …"])
    expect(page.locator("#main")).to_be_focused()  # what was pressed is not there any more
    answer(page, spare, "Put back in service")
    expect(spare.get_by_role("button")).to_have_text(["Drain …"])
    expect(spare).not_to_contain_text("drained")

    for name in ("spare", "gone"):
        running_fleet.kill(name)
    answer(page, gone, "Forget")
    expect(gone).to_have_count(0)
    spare.get_by_role("button", name="Forget").click()
    running_fleet.ask("forget_host", host="spare")
    dialog = page.get_by_role("dialog", name="Forget spare")
    dialog.locator("#ask-do").click()
    expect(page.locator("#ask-wrong")).to_contain_text("there is no host spare")
    assert serious(page) == []
    assert fits(page)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Deployments").click()
    expect(page.get_by_role("button", name="Apply …")).to_be_visible()
    expect(page.get_by_role("button", name="Drain …")).to_have_count(0)


def test_draining_the_only_host_says_what_stays_before_it_is_done_and_is_recorded_with_its_reason(
    running_fleet: Fleet, server_beside_fleet: People, context: BrowserContext
) -> None:
    running_fleet.ask("undrain_host", host="here")
    for name in ("alone", "bound"):
        running_fleet.deploy_first(name, 1)
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.ADMIN, name="ina"), "/hosts")
    here = page.locator(".host").filter(has_text="here")
    here.get_by_role("button", name="Drain").click()
    plan = page.locator("#ask-plan .warning")
    expect(plan).to_contain_text("no other host takes alone, bound")
    expect(plan).to_contain_text("so these stay.")
    expect(page.locator("#ask-do")).to_have_class("danger")
    assert serious(page) == []
    page.get_by_role("dialog").get_by_label("Reason").fill("a new disk")
    page.locator("#ask-do").click()
    expect(here).to_contain_text("drained by ina")
    page.goto(f"{server_beside_fleet.server.url}/activity?who=ina&kind=hosts")
    expect(page.locator("#activity .record").first).to_contain_text("so these stay: a new disk")
    running_fleet.ask("undrain_host", host="here")


@pytest.mark.usefixtures("running_fleet")
def test_who_may_not_steer_hosts_has_no_button_beside_them(
    server_beside_fleet: People, context: BrowserContext
) -> None:
    page = log_in(context, server_beside_fleet.server.url, server_beside_fleet.token(Role.OPERATOR))
    with page.expect_response("**/v1/offered") as offered:
        page.get_by_role("link", name="Hosts").click()
    assert offered.value.ok
    expect(page.locator(".host").filter(has_text="here")).to_be_visible()
    expect(page.locator(".host").get_by_role("button")).to_have_count(0)


@pytest.mark.usefixtures("running_fleet")
def test_on_a_telephone_the_head_of_the_page_is_one_row(server_beside_fleet: People, context: BrowserContext) -> None:
    secret = server_beside_fleet.token(Role.OPERATOR, name="a-machine-with-a-name-as-long-as-names-are")
    page = log_in(context, server_beside_fleet.server.url, secret, "/hosts")
    for width in (390, 360):
        page.set_viewport_size({"width": width, "height": 800})
        parts = page.locator("header > *, header form > *:not([type=hidden])").all()
        boxes = [box for part in parts if (box := part.bounding_box())]
        assert max(box["y"] for box in boxes) < min(box["y"] + box["height"] for box in boxes), boxes
        assert max(box["x"] + box["width"] for box in boxes) <= width, boxes
    assert serious(page) == []
    assert fits(page)


def answer(page: Page, host: Locator, button: str) -> None:
    """A button beside a host, and its dialog, which takes a reason and asks for none."""
    host.get_by_role("button", name=button).click(timeout=60_000)
    expect(page.get_by_role("dialog").get_by_role("button", name="Cancel")).to_be_focused()
    expect(page.get_by_role("dialog").get_by_role("textbox")).to_have_count(1)
    page.locator("#ask-do").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
