"""A real browser for tests: Debian's Chromium, driven over its own protocol."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

MISSING = "NO BROWSER, SO THE PAGE IS NOT TRIED HERE: 'make browser' unpacks Debian's Chromium, without root"
_UNPACKED = Path(sys.prefix) / "chromium"
_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/pulseaudio", "usr/lib/aarch64-linux-gnu")


def chromium() -> Path | None:
    """On the PATH, or where `make browser` puts it."""
    found = shutil.which("chromium")
    if found is not None:
        return Path(found)
    unpacked = _UNPACKED / "usr/lib/chromium/chromium"
    return unpacked if unpacked.exists() else None


@contextmanager
def browser(program: Path) -> Iterator[Browser]:
    """One without a window; it ends with the block."""
    libraries = os.pathsep.join(str(_UNPACKED / folder) for folder in _LIBRARIES)
    without_sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=program,
            args=[*without_sandbox, "--disable-dev-shm-usage"],
            env={**os.environ, "LD_LIBRARY_PATH": libraries},
        )
        yield started
        started.close()


def log_in(context: BrowserContext, url: str, token: str, path: str = "/") -> Page:
    """A tab that shows this path, after the form was filled in as a person does."""
    page = context.new_page()
    page.goto(f"{url}{path}")
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("live", exact=True).wait_for()
    return page
