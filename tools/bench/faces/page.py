"""The live page with a thousand deployments in Chromium: when it is there, and what an update costs its script.

Rollouts are seeded and stand still: nobody but this measurement changes anything. Script, layout and tasks are as
Chromium counts them for the tab.
"""

import time
from collections.abc import Mapping
from statistics import median
from typing import Any, LiteralString

import psycopg
from playwright.sync_api import BrowserContext, CDPSession, Page, expect

from domain.installation.tokens import Role
from tests.support.people.browser import MISSING, browser, chromium, log_in
from tools.bench.data import MUTATING, QUIET, WAITING, fill
from tools.bench.stage import Stage, stage

_UPDATES = 20
_ALL_MS = 5_000
_TOUCHED: LiteralString = "UPDATE deployments SET version = version + 1, reason = %s WHERE name = %s"
_ALL_TOUCHED: LiteralString = "UPDATE deployments SET version = version + 1, reason = %s"
_PAINTED = """() => {
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    return paint && paint.startTime;
}"""
_WATCH = """
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
    }).observe({ type: "longtask", buffered: true });
    const seen = setInterval(() => {
      const count = document.querySelectorAll(".row").length;
      if (count && !window.first) window.first = performance.now();
      if (count >= window.expected) { window.whole = performance.now(); clearInterval(seen); }
    }, 5);
"""


def measure(*, full: bool) -> dict[str, Any]:
    """Milliseconds until the first paint, the first row and the last one; of script and layout for one update."""
    return {"rows": [run(count) for count in ((100, 1_000, 3_000) if full else (1_000,))]}


def run(deployments: int) -> Mapping[str, Any]:
    """A tab that is opened anew on so many."""
    program = chromium()
    if program is None:
        raise RuntimeError(MISSING)
    with stage() as made:
        with psycopg.connect(made.database, autocommit=True) as connection:
            fill(connection, (*QUIET * 7, *MUTATING, *WAITING), deployments)
            connection.execute("UPDATE deployments SET due_at = NULL")
        with made.serving_people() as people, browser(program) as chrome:
            context = chrome.new_context(viewport={"width": 1280, "height": 900})
            log_in(context, people.server.url, people.token(Role.VIEWER)).close()
            loaded = _loaded(context, people.server.url, deployments)
            return {"deployments": deployments, **loaded, **_updated(context, made, deployments)}


def _loaded(context: BrowserContext, url: str, deployments: int) -> Mapping[str, Any]:
    page = context.new_page()
    page.add_init_script(f"window.expected = {deployments};{_WATCH}")
    page.goto(url)
    expect(page.locator(".row")).to_have_count(deployments, timeout=60_000)
    page.wait_for_timeout(100)
    return {
        "first_paint_ms": page.evaluate(_PAINTED),
        "first_row_ms": page.evaluate("window.first"),
        "last_row_ms": page.evaluate("window.whole"),
        "longest_task_ms": page.evaluate("window.longest"),
    }


def _updated(context: BrowserContext, made: Stage, deployments: int) -> Mapping[str, Any]:
    """Of one row, the median; and of all rows at once, the longest time that the tab answers nobody."""
    (page,) = context.pages
    counters = context.new_cdp_session(page)
    counters.send("Performance.enable")
    spent = [_spent(page, counters, made, number) for number in range(_UPDATES)]
    page.evaluate("window.longest = 0")
    with psycopg.connect(made.database, autocommit=True) as connection:
        connection.execute(_ALL_TOUCHED, ("all at once",))
    page.wait_for_timeout(_ALL_MS)  # who looks at every row meanwhile would be measured too
    longest = page.evaluate("window.longest")
    expect(page.locator(".row .why").filter(has_text="all at once")).to_have_count(deployments)
    return {
        "update_script_ms": median(script for script, _ in spent),
        "update_layout_ms": median(layout for _, layout in spent),
        "update_of_all_longest_task_ms": longest,
    }


def _spent(page: Page, counters: CDPSession, made: Stage, number: int) -> tuple[float, float]:
    """Milliseconds of script, and of style and layout, for one row that changes; what asks for it is in both."""
    name, reason = f"service-{1 + 7 * number}", f"update {number}"
    row = page.locator(f"[data-key={name}] .why")
    before = _counted(counters)
    with psycopg.connect(made.database, autocommit=True) as connection:
        connection.execute(_TOUCHED, (reason, name))
    time.sleep(1.0)
    after = _counted(counters)
    expect(row).to_contain_text(reason, timeout=60_000)
    return tuple(1000 * (late - early) for late, early in zip(after, before, strict=True))  # type: ignore[return-value]


def _counted(counters: CDPSession) -> tuple[float, float]:
    metrics = {each["name"]: each["value"] for each in counters.send("Performance.getMetrics")["metrics"]}
    return metrics["ScriptDuration"], metrics["LayoutDuration"] + metrics["RecalcStyleDuration"]
