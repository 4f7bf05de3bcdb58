"""A real browser, and the server for people beside the fleet that runs."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.support.people.browser import MISSING, browser, chromium


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    program = chromium()
    if program is None:
        pytest.skip(MISSING)
    with browser(program) as started:
        yield started


@pytest.fixture
def context(chrome: Browser) -> Iterator[BrowserContext]:
    """The tabs of one browser, which have one login."""
    made = chrome.new_context(viewport={"width": 1280, "height": 900})
    made.set_default_timeout(20_000)
    expect.set_options(timeout=20_000)
    yield made
    made.close()
