"""Rollouts to what is spoken to or reached otherwise, and the ways back, under load: no request is lost."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from cli.demo.load.generator import Load
from tests.support.certificates.authorities import Authority
from tests.support.proxies import plain_http
from tests.support.proxies.edge import edge_before
from tests.support.stack.stack import ROOT, Fleet
from tests.support.stack.waiting import eventually
from tests.support.workers.callers import POSTS, asked
from tests.support.workers.runtimes import LEAN_SERVICE

pytestmark = pytest.mark.e2e

ONE_BY_ONE = {"strategy": "rolling_update", "spec": {"max_surge": 1, "max_unavailable": 0}}
BY_HALF = {"strategy": "canary", "spec": {"steps": ["50%"]}}
"""Which waits there until somebody decides."""
BEFORE, AFTER = ("old.example.com", "/old/"), ("new.example.com", "/new/")
"""By a host name alone, and by a path alone."""
_PAUSE_SECONDS = 0.08
MANY = 4
"""Callers by each of them: about 100 requests a second in all."""
CHECK = {"path": "/", "interval_seconds": 0.3}
HTTP2_REPLICA = ROOT / "tests" / "support" / "proxies" / "http2_replica.py"


@pytest.fixture
def url(fleet: Fleet, tmp_path: Path) -> Iterator[str]:
    """That of an Envoy."""
    with edge_before(fleet.database, fleet.environment["REDIS_URL"], tmp_path) as envoy:
        yield envoy


def http1(**env: str) -> dict[str, Any]:
    return {"command": LEAN_SERVICE, "env": env, "health_check": CHECK}


def http2() -> dict[str, Any]:
    check = {**CHECK, "protocol": "http2"}
    return {"command": [sys.executable, str(HTTP2_REPLICA), "{port}"], "health_check": check}


def apply(
    fleet: Fleet, revision: str, spec: dict[str, Any], policy: dict[str, Any] = ONE_BY_ONE, **traffic: Any
) -> None:
    document = {"deployment": "web", "revision": {"name": revision, **spec}, "policy": policy, "replicas": 3}
    fleet.ask("apply", documents=[{**document, "traffic": traffic}])


def answers(fleet: Fleet, load: Load, revision: str) -> None:
    """The rollout is over, and callers are answered by this revision."""
    eventually(lambda: fleet.state("web")["lifecycle"] == "ready", what=f"{revision} runs")
    before = load.tally.answers[200, revision]
    eventually(lambda: load.tally.answers[200, revision] > before + 30, what=f"{revision} answers")


def test_no_request_is_lost_from_http1_to_http2_to_tls_and_back(fleet: Fleet, url: str, tmp_path: Path) -> None:
    authority, folder = Authority.make(), tmp_path / "own"
    folder.mkdir()
    chain, key = authority.certify("inside.example.com").written(folder)
    ca = folder / "ca.pem"
    ca.write_text(authority.pem)
    by_tls = {"ca": f"file:{ca}", "server_name": "inside.example.com"}
    fleet.start_workers("worker1", ROLLWAY_SECRETS_ALLOW=f"file:{folder}")
    fleet.start_beat()
    apply(fleet, "v1", http1())
    with asked(url, "web", POSTS) as load:
        answers(fleet, load, "v1")
        apply(fleet, "v2", http2(), protocol="http2")
        answers(fleet, load, "v2")
        fleet.ask("undo", deployment="web")
        answers(fleet, load, "v1")
        apply(fleet, "v3", http1(CERTIFICATE=str(chain), KEY=str(key)), upstream_tls=by_tls)
        answers(fleet, load, "v3")
        fleet.ask("undo", deployment="web", revision="v2")
        answers(fleet, load, "v2")
        fleet.ask("activate_revision", deployment="web", revision="v3")
        eventually(lambda: fleet.state("web")["lifecycle"] == "deploying")
        fleet.ask("abort", deployment="web")
        answers(fleet, load, "v2")
    assert load.tally.failed == {}, load.tally.answers


@dataclass
class Moving:
    """Callers by a name that releases change. `names`: the one that serves now, then the one that comes.

    The first is asked as long as it leads anywhere. A request is lost where it does not before the rollout is over, and
    where the second does not lead anywhere then.
    """

    fleet: Fleet
    envoy: str
    names: tuple[str, str]
    answers: Counter[tuple[int, str]] = field(default_factory=Counter)
    over: Event = field(default_factory=Event)

    def ask(self) -> None:
        cookies = httpx.Cookies()  # of who stays with a replica
        while not self.over.wait(_PAUSE_SECONDS):
            while True:
                now, comes = names = self.names
                answer = self.once(now, cookies)
                if answer.status_code == 404:
                    is_over = self.fleet.state("web")["lifecycle"] != "deploying"  # a sick replica may be replaced
                    if is_over or names is not self.names:  # else the next rollout may have begun before the look
                        answer = self.once(comes, cookies)
                if answer.status_code != 404 or names is self.names:
                    break  # else a slow caller has asked by names that are two rollouts old
            self.answers[answer.status_code, _revision(answer)] += 1

    def once(self, name: str, cookies: httpx.Cookies) -> httpx.Response:
        """By a path, or by a host name."""
        path, headers = (name, {}) if name.startswith("/") else ("/", {"Host": name})
        answer = plain_http.post(
            f"{self.envoy}{path}", headers={**headers, "Cookie": "; ".join(map("=".join, cookies.items()))}
        )
        cookies.update(answer.cookies)
        return answer


def _revision(answer: httpx.Response) -> str:
    return str(answer.json()["revision"]) if answer.is_success else ""


@contextmanager
def moving(fleet: Fleet, envoy: str) -> Iterator[tuple[Moving, ...]]:
    """Callers by host name, and callers by path."""
    every = tuple(Moving(fleet, envoy, names) for names in zip(BEFORE, AFTER, strict=True))
    with ThreadPoolExecutor(MANY * len(every)) as pool:
        running = [pool.submit(callers.ask) for callers in every for _ in range(MANY)]
        try:
            yield every
        finally:
            for callers in every:
                callers.over.set()
        for each in running:
            each.result()


def answered(every: Iterable[Moving], revision: str) -> None:
    """Callers of both kinds are answered by this revision."""
    before = [callers.answers[200, revision] for callers in every]
    for callers, count in zip(every, before, strict=True):
        eventually(
            partial(lambda its, n: its.answers[200, revision] > n + 10, callers, count), what=f"{revision} answers"
        )


def moved(fleet: Fleet, every: Iterable[Moving], revision: str) -> None:
    """The rollout is over, and callers have its names; the way from there leads to those of before."""
    eventually(lambda: fleet.state("web")["lifecycle"] == "ready", what=f"{revision} runs")
    answered(every, revision)
    for callers in every:
        callers.names = callers.names[::-1]


def test_no_request_is_lost_while_names_paths_and_stickiness_change(fleet: Fleet, url: str) -> None:
    fleet.start_workers("worker1")
    fleet.start_beat()
    (host, prefix), (new_host, new_prefix) = BEFORE, AFTER
    old: dict[str, Any] = {"hosts": [host], "path_prefix": prefix}
    new: dict[str, Any] = {"hosts": [new_host], "path_prefix": new_prefix, "sticky": {"cookie": "my-replica"}}
    apply(fleet, "v1", http1(VERSION="v1"), **old)
    eventually(lambda: plain_http.get(f"{url}{prefix}").is_success, what="a route")
    with moving(fleet, url) as every:
        answered(every, "v1")
        apply(fleet, "v2", http1(VERSION="v2"), **new)
        moved(fleet, every, "v2")
        fleet.ask("undo", deployment="web")  # names, paths and stickiness go back
        moved(fleet, every, "v1")
        apply(fleet, "v3", http1(VERSION="v3"), BY_HALF, **new)
        eventually(lambda: _revision(plain_http.post(f"{url}{new_prefix}")) == "v3", what="v3 answers")
        fleet.ask("abort", deployment="web")  # in the middle, where names of before and of after lead there
        eventually(lambda: fleet.state("web")["lifecycle"] == "ready", what="v1 runs alone")
        answered(every, "v1")
        apply(fleet, "v4", http1(VERSION="v4"), **new)
        moved(fleet, every, "v4")
        apply(fleet, "v5", http1(VERSION="v5"), **old)  # forward, from sticky to none
        moved(fleet, every, "v5")
    lost = [count for callers in every for (status, _), count in callers.answers.items() if status != 200]
    assert sum(lost) == 0, [callers.answers for callers in every]
