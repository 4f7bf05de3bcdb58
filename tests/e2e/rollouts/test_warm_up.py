"""Replicas that are slow at first, rolled out under load through a real Envoy: with a warm-up nobody notices."""

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.support.proxies.edge import edge_before
from tests.support.stack.stack import Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e

SERVICE = Path(__file__).parents[2] / "support" / "workers" / "cold_service.py"
BOTH_AT_ONCE = {"strategy": "rolling_update", "spec": {"max_surge": 2, "max_unavailable": 0}}
RATE = 30


def add(fleet: Fleet, name: str, revision: str, warm_up: dict[str, Any] | None = None, **env: str) -> None:
    spec = {"command": [sys.executable, str(SERVICE)], "env": env, "drain_seconds": 0.2}
    spec |= {"health_check": {"path": "/health", "interval_seconds": 0.5}} | ({"warm_up": warm_up} if warm_up else {})
    fleet.ask("add_revision", deployment=name, name=revision, spec=spec)


def first(fleet: Fleet, name: str, replicas: int) -> None:
    fleet.ask("create_deployment", deployment=name, desired_replicas=replicas, policy=BOTH_AT_ONCE)
    add(fleet, name, "v1")
    fleet.activate(name, "v1")
    fleet.wait_until_ready(name, "v1", replicas)


def ask(url: str, host: str) -> float:
    began = time.monotonic()
    with urlopen(Request(url, headers={"host": host}), timeout=60) as answer:
        assert answer.status == 200
        answer.read()
    return time.monotonic() - began


@contextmanager
def asked(url: str, name: str) -> Iterator[list[float]]:
    """Requests at a steady rate until the block ends; in the end how long each took."""
    over, seconds, started = Event(), list[float](), time.monotonic()
    with ThreadPoolExecutor(100) as callers:

        def send() -> None:
            futures = []
            for number in count():
                if over.wait(max(0.0, started + number / RATE - time.monotonic())):
                    break
                futures.append(callers.submit(ask, url, f"{name}.localhost"))
            seconds.extend(future.result() for future in futures)

        sender = Thread(target=send)
        sender.start()
        try:
            yield seconds
        finally:
            over.set()
            sender.join()


def p99_of_a_rollout(fleet: Fleet, url: str, name: str, warm_up: dict[str, Any] | None) -> float:
    first(fleet, name, 2)
    eventually(lambda: ask(url, f"{name}.localhost") < 1, what="Envoy to know it")
    add(fleet, name, "v2", warm_up, COLD="3")
    with asked(url, name) as seconds:
        fleet.activate(name, "v2")
        fleet.wait_until_ready(name, "v2", 2)
        time.sleep(2)
    return sorted(seconds)[int(0.99 * len(seconds))]


def test_callers_of_a_rollout_notice_that_replicas_are_slow_at_first_unless_they_are_warmed_up(fleet: Fleet) -> None:
    fleet.start_workers("worker1", "worker2")
    fleet.start_beat()
    with edge_before(fleet.database, fleet.environment["REDIS_URL"], fleet.home) as url:
        cold = p99_of_a_rollout(fleet, url, "cold", None)
        warm = p99_of_a_rollout(fleet, url, "warm", {"requests": [{"path": "/", "under_seconds": 2}]})
    assert (cold > 4, warm < 0.2) == (True, True), (cold, warm)


def test_a_worker_that_is_killed_in_the_middle_has_warmed_nothing_up(fleet: Fleet) -> None:
    fleet.start_workers("worker1")
    fleet.start_beat()
    fleet.ask("create_deployment", deployment="web", desired_replicas=1)
    asked_for = {"requests": [{"path": "/", "times": 30}]}
    add(fleet, "web", "v1", asked_for, SECONDS="0.1")
    fleet.activate("web", "v1")

    def row() -> dict[str, Any]:
        (found,) = fleet.rows("SELECT status, address, status_reason FROM routes") or [{}]
        return found

    def warm_ups() -> int:
        with urlopen(f"http://{row()['address']}/asked", timeout=120) as answer:
            return int(json.load(answer)["asked"])

    eventually(lambda: row().get("status_reason", "").startswith("warming up: "), what="its warm-up")
    eventually(lambda: warm_ups() > 10, what="half of it")
    fleet.kill("worker1")
    done = warm_ups()
    assert (done < 30, row()["status"]) == (True, "provisioning")
    fleet.start_workers("worker2")
    eventually(lambda: row()["status"] == "healthy", what="another worker to warm it up")
    assert warm_ups() >= done + 29, "one may have been on its way"
