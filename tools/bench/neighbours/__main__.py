"""`python -m tools.bench.neighbours [--seconds N]`: what others wait for, alone and next to a crowd that takes it all.

As root, on Linux. Both are measured on one stack, one after the other; exits with 1 when a median more than doubles.
"""

import argparse
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import uniform

import httpx
from playwright.sync_api import Page
from rich.console import Console
from rich.table import Table

from domain.installation.tokens import Role
from tests.support.people.browser import MISSING, browser, chromium, log_in
from tools.bench.figures import spread
from tools.bench.neighbours.crowd import NAMES, crowd
from tools.bench.neighbours.stand import Stand, stand

SERVE = ["python3", "-m", "http.server", "--bind", "127.0.0.1", "{port}"]
HEALTH = {"path": "/", "interval_seconds": 0.5}
MOST = 2.0
"""So many times as long as alone a median may take beside the crowd."""
_PAUSE_SECONDS = (0.5, 1.5)
"""At random: workers look once a second, and who asked in step with them would always wait for as long."""
_FAILS_AFTER = 120.0


@dataclass
class Watched:
    """Seconds that each thing took, by its name, and what failed."""

    stand: Stand
    until: float
    took: dict[str, list[float]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def timed(self, name: str, do: Callable[[], None]) -> None:
        """Do it once, note how long it took, and pause."""
        began = time.monotonic()
        try:
            do()
        except Exception as error:  # noqa: BLE001 -- whatever fails is a figure of the table
            self.failed.append(f"{name}: {error!r}")
        else:
            self.took.setdefault(name, []).append(time.monotonic() - began)
        time.sleep(uniform(*_PAUSE_SECONDS))

    def roll_out(self) -> None:
        """`web` goes to a new revision of two replicas, and waits until all is done."""
        with self.stand.client(Role.OPERATOR, "web") as owner:
            while time.monotonic() < self.until:
                revision = f"v{time.monotonic_ns()}"
                self.stand.add(owner, "web", revision, command=SERVE, env={"R": revision}, health_check=HEALTH)

                def whole(revision: str = revision) -> None:
                    owner.post("/v1/deployments/web/activate", json={"revision": revision}).raise_for_status()
                    _wait_until_ready(owner, "web", revision)

                self.timed("rollout", whole)

    def check_secrets(self) -> None:
        """`vault` asks for a file that no host was asked for before."""
        with self.stand.client(Role.OPERATOR, "vault") as owner:
            while time.monotonic() < self.until:
                revision = f"v{time.monotonic_ns()}"
                kept = self.stand.folder / revision
                kept.write_text("hunter2")
                env = {"KEY": {"secret": f"file:{kept}"}}
                self.stand.add(owner, "vault", revision, command=SERVE, env=env, health_check=HEALTH)
                body = {"revision": revision, "supersede": True}

                def ask(body: object = body) -> None:
                    owner.post("/v1/deployments/vault/activate", json=body).raise_for_status()

                self.timed("secret check", ask)

    def log_in(self) -> None:
        """Somebody whose token was never shown before sees the page."""
        while time.monotonic() < self.until:
            token = self.stand.token(Role.VIEWER)
            with self.stand.stranger() as person:

                def enter(person: httpx.Client = person, token: str = token) -> None:
                    assert person.post("/login", data={"token": token}).status_code == 303
                    assert person.get("/").status_code == 200

                self.timed("login", enter)

    def look(self) -> None:
        """A person opens the page in a browser, until it shows that it is live and every row is there."""
        program = chromium()
        if program is None:
            raise SystemExit(MISSING)
        with browser(program) as chrome:
            tab = log_in(chrome.new_context(), self.stand.people_url, self.stand.token(Role.VIEWER, "web", "vault"))
            while time.monotonic() < self.until:
                self.timed("page", lambda: _opened(tab))


def _opened(tab: Page) -> None:
    tab.reload()
    tab.locator("[data-key=web]").wait_for(timeout=1000 * _FAILS_AFTER)
    tab.get_by_text("live", exact=True).wait_for(timeout=1000 * _FAILS_AFTER)


def _wait_until_ready(owner: httpx.Client, name: str, revision: str) -> None:
    ends_at = time.monotonic() + _FAILS_AFTER
    while time.monotonic() < ends_at:
        found = owner.get(f"/v1/deployments/{name}").raise_for_status().json()
        if found["lifecycle"] == "ready" and found["current_revision"] == revision:
            return
        time.sleep(0.1)
    raise TimeoutError(f"{name} is {found['lifecycle']}: {found.get('reason')}")


def watched(made: Stand, seconds: float) -> Watched:
    """Measure all of them at once, for so many seconds."""
    found = Watched(made, time.monotonic() + seconds)
    doing = (found.roll_out, found.check_secrets, found.log_in, found.look)
    threads = [threading.Thread(target=do) for do in doing]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def table(alone: Watched, beside: Watched) -> tuple[Table, Mapping[str, float]]:
    """A row for each thing that is waited for, in milliseconds; and by how much each median grew."""
    shown = Table("waited for", *(f"{what} {when}" for when in ("alone", "beside") for what in ("times", "p50", "p99")))
    shown.add_column("p50 beside / alone")
    grew = {}
    for name, values in alone.took.items():
        both = [spread(values), spread(beside.took.get(name, []))]
        grew[name] = both[1].get("p50", float("inf")) / both[0]["p50"]
        figures = [
            f"{each['count']}" if what == "count" else f"{1000 * each.get(what, float('nan')):.0f} ms"
            for each in both
            for what in ("count", "p50", "p99")
        ]
        shown.add_row(name, *figures, f"{grew[name]:.2f}")
    return shown, grew


def main() -> None:
    """Measure, show the table, and judge."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.neighbours", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="how long the crowd is there; a third of it before")
    parser.add_argument("--crowd", nargs="+", choices=NAMES, default=NAMES, help="these alone")
    arguments = parser.parse_args()
    seconds = arguments.seconds
    console = Console(width=max(Console().width, 120))
    with stand() as made:
        made.deploy("web", SERVE, replicas=2, role=Role.OPERATOR, health_check=HEALTH)
        made.deploy("vault", SERVE, replicas=1, role=Role.OPERATOR, health_check=HEALTH)
        alone = watched(made, seconds / 3)
        with crowd(made, arguments.crowd) as met:
            beside = watched(made, seconds)
    shown, grew = table(alone, beside)
    console.print(shown)
    for said in ("alone", alone), ("beside", beside):
        console.print(f"failed {said[0]}: {len(said[1].failed)}", *said[1].failed[:5])
    console.print("what the crowd was answered:", dict(sorted(met.items())))
    sys.exit(max(grew.values()) > MOST or len(beside.failed) > 0)


if __name__ == "__main__":
    main()
