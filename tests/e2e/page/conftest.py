"""A real browser, and the server for people beside the fleet that runs."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.support.people.browser import MISSING, browser, chromium
from tests.support.people.people_api import People, serving_people
from tests.support.stack.stack import Fleet


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip(MISSING)
    with browser(program) as started:
        yield started


@pytest.fixture(scope="module")
def server_beside_fleet(running_fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[People]:
    folder = tmp_path_factory.mktemp("people")
    with serving_people(running_fleet.database, running_fleet.environment["REDIS_URL"], folder) as made:
        yield made


@pytest.fixture
def context(chrome: Browser) -> Iterator[BrowserContext]:
    """The tabs of one browser, which have one login."""
    made = chrome.new_context(viewport={"width": 1280, "height": 900})
    made.set_default_timeout(20_000)
    expect.set_options(timeout=20_000)
    yield made
    made.close()
