"""`make images`: pictures of the page into docs/images/, from a small fleet that really runs."""

import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from playwright.sync_api import Browser, Page, ViewportSize

from domain.installation.tokens import Role
from tests.support.people.browser import MISSING, browser, chromium, log_in
from tests.support.people.people_api import People, serving_people
from tests.support.proxies import plain_http
from tests.support.proxies.edge import api_process, envoy_process
from tests.support.rows.databases import copy_of, migrated_template
from tests.support.stack.servers import embedded_postgres, embedded_redis
from tests.support.stack.stack import Fleet

FOLDER = Path("docs/images")
CAREFUL = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
BLUE_GREEN = {"strategy": "blue_green", "spec": {"auto_promote": False}}
CANARY = {"strategy": "canary", "spec": {"steps": ["20%"], "judge": {}}}
ASKED = ("checkout", "prices")
PAUSE_SECONDS = 0.02
STARTUP = "3"
WIDE, NARROW = ViewportSize(width=1200, height=620), ViewportSize(width=400, height=760)


@contextmanager
def stack(folder: Path) -> Iterator[tuple[Fleet, People]]:
    """Servers, a worker, a beat, and the server for people."""
    homes = [folder / name for name in ("postgres", "valkey", "fleet", "people")]
    for home in homes:
        home.mkdir()
    with (
        embedded_postgres(homes[0]) as postgres,
        embedded_redis(homes[1]) as valkey,
        copy_of(migrated_template(postgres), postgres) as database,
        serving_people(database, valkey.url, homes[3]) as people,
    ):
        fleet = Fleet(database, valkey.url, homes[2])
        try:
            fleet.start_workers("worker1")
            fleet.start_beat()
            yield fleet, people
        finally:
            fleet.end()


def prepare(fleet: Fleet) -> None:
    """Services in the states that people meet, which take their time to start."""
    for name, replicas, policy in (
        ("checkout", 3, CAREFUL),
        ("accounts", 3, BLUE_GREEN),
        ("prices", 3, CANARY),
        ("search", 3, CAREFUL),
        ("mail", 2, CAREFUL),
        ("thumbnails", 6, CAREFUL),
    ):
        fleet.ask("create_deployment", deployment=name, desired_replicas=replicas, policy=policy, actor="ann")
        fleet.add_revision(name, "v1", STARTUP_SECONDS=STARTUP)
        fleet.ask("activate_revision", deployment=name, revision="v1", actor="ann", reason="first day")
        fleet.wait_until_ready(name, "v1", replicas)
    for name in ("accounts", "search", "checkout", "prices"):
        fleet.add_revision(name, "v2", **{"BROKEN": "start"} if name == "search" else {"STARTUP_SECONDS": STARTUP})


@contextmanager
def callers(fleet: Fleet, redis_url: str, folder: Path) -> Iterator[None]:
    """An Envoy, and somebody who asks through it all the while, so that there is something to tell."""
    api = api_process(fleet.database, redis_url, folder)
    envoy = envoy_process(api, folder)
    over = Event()

    def ask() -> None:
        while not over.wait(PAUSE_SECONDS):
            for name in ASKED:
                plain_http.get(f"{envoy.url}/", headers={"Host": name})

    asking = Thread(target=ask)
    api.start()
    envoy.start()
    try:
        asking.start()
        yield
    finally:
        over.set()
        asking.join()
        for process in (envoy, api):
            process.end(kill=True)


def take(chrome: Browser, fleet: Fleet, people: People) -> None:
    """The pictures, one after the other, while a rollout moves."""
    context = chrome.new_context(viewport=WIDE, device_scale_factor=1)
    page = log_in(context, people.server.url, people.token(Role.ADMIN, name="ann"), "/deployments/checkout")
    press(page, "Roll out")
    page.get_by_text("judging by earlier starts").wait_for()
    page.get_by_label("Reason").fill("ticket 7")
    page.screenshot(path=FOLDER / "plan.png")
    page.locator("#ask-do").click()
    page.locator(".wave:not(.coming)").nth(2).wait_for()
    page.get_by_text(re.compile(r"v1: 0 of [1-9]")).wait_for()
    page.screenshot(path=FOLDER / "deployment.png", full_page=True)
    for name, actor, reason in (
        ("accounts", "bob", "ticket 9"),
        ("search", "eve", "an index"),
        ("prices", "dan", "ticket 12"),
    ):
        fleet.ask("activate_revision", deployment=name, revision="v2", actor=actor, reason=reason)
    page.get_by_role("link", name="Deployments").click()
    page.get_by_role("region", name="Waiting for you").wait_for()
    page.screenshot(path=FOLDER / "fleet.png", clip={"x": 0, "y": 0, "width": 1200, "height": 430})
    page.get_by_role("link", name=re.compile("prices")).click()
    page.locator(".curves figure").first.wait_for()
    page.get_by_text(re.compile(r"v2: 0 of [1-9]")).wait_for()
    page.set_viewport_size({**WIDE, "height": 860})
    page.screenshot(path=FOLDER / "canary.png")
    page.get_by_role("link", name="Deployments").click()
    around(page, fleet)
    dark_and_narrow(page)
    context.close()


def press(page: Page, button: str) -> None:
    """The button whose text begins so, of those of the page."""
    page.get_by_role("group", name="What you can do").get_by_role("button", name=button).first.click()


def around(page: Page, fleet: Fleet) -> None:
    """What stands beside a rollout: a new deployment, a freeze with the way back in it, tokens, and who did what."""
    page.set_viewport_size(WIDE)
    press(page, "New deployment")
    page.locator("#ask-plan").get_by_text("No replica moves").or_(page.locator("#ask-plan li")).first.wait_for()
    page.screenshot(path=FOLDER / "new.png")
    page.get_by_role("button", name="Cancel").click()
    fleet.ask("set_freeze", freeze="sale", duration_seconds=4 * 3600, actor="eve", reason="the sale")
    page.get_by_role("link", name=re.compile("search")).click()
    page.get_by_role("list", name="What you cannot do now").get_by_text("frozen").first.wait_for()
    page.screenshot(path=FOLDER / "frozen.png")
    page.get_by_role("link", name="Activity").click()
    page.locator("#activity .record").nth(5).wait_for()
    page.screenshot(path=FOLDER / "activity.png")
    page.get_by_role("link", name="Tokens").click()
    page.get_by_role("button", name="Make token").wait_for()
    page.screenshot(path=FOLDER / "tokens.png")
    page.get_by_role("link", name="Deployments").click()
    fleet.ask("delete_freeze", freeze="sale", actor="eve")


def dark_and_narrow(page: Page) -> None:
    """The same at night, and on a telephone."""
    page.emulate_media(color_scheme="dark")
    page.get_by_role("region", name="Waiting for you").wait_for()
    page.screenshot(path=FOLDER / "fleet-dark.png", clip={"x": 0, "y": 0, "width": 1200, "height": 430})
    page.set_viewport_size(NARROW)
    page.get_by_role("link", name=re.compile("search")).click()
    page.get_by_text("rolled back", exact=True).first.wait_for()
    page.get_by_role("group", name="What you can do").wait_for()
    page.screenshot(path=FOLDER / "deployment-narrow-dark.png")


def main() -> int:
    """Exit code 1 where there is no browser."""
    program = chromium()
    if program is None:
        sys.stderr.write(f"{MISSING}\n")
        return 1
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, stack(Path(folder)) as (fleet, people), browser(program) as chrome:
        prepare(fleet)
        with callers(fleet, fleet.environment["REDIS_URL"], Path(folder)):
            take(chrome, fleet, people)
    return 0


if __name__ == "__main__":
    sys.exit(main())
