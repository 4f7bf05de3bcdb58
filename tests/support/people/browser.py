"""A real browser for tests: Debian's Chromium, driven over its own protocol."""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright

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


def press(page: Page, button: str, reason: str, **fields: str) -> None:
    """A button, and what its dialog asks, once it has shown the plan."""
    page.get_by_role("group", name="What you can do").get_by_role("button", name=button).click()
    dialog = page.get_by_role("dialog")
    for label, value in fields.items():
        field = dialog.get_by_label(label).filter(visible=True)
        is_chosen = field.evaluate("element => element.localName") == "select"
        field.select_option(value) if is_chosen else field.fill(value)
    dialog.get_by_label("Reason").fill(reason)
    expect(dialog.locator("#ask-plan")).to_contain_text("never more than")
    dialog.locator("#ask-do").click()
    expect(dialog).to_be_hidden()


def drop(page: Page, onto: Locator, name: str, text: str) -> None:
    """A file that a person lets go over an input."""
    made = "([name, text]) => { const held = new DataTransfer(); held.items.add(new File([text], name)); return held; }"
    onto.dispatch_event("drop", {"dataTransfer": page.evaluate_handle(made, [name, text])})


def look_at(page: Page, state: Literal["hidden", "visible"]) -> None:
    """As when another tab comes to the front, or this one; without a window no tab ever is hidden."""
    page.evaluate(
        """state => {
            Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )


def fits(page: Page) -> bool:
    """Whether a screen, and then a telephone, shows all of it without being moved sideways."""
    is_wide = []
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 700})
        is_wide.append(page.evaluate("document.documentElement.scrollWidth") > width)
    return not any(is_wide)


def serious(page: Page) -> list[str]:
    """What is against the rules, and where."""
    violations = Axe().run(page).response["violations"]
    return [
        f"{found['id']}: {[node['html'] for node in found['nodes']]}"
        for found in violations
        if found["impact"] in ("serious", "critical")
    ]
