"""Replicas that another system runs: Rollway asks its webhook, and is told by Celery, as such a system would do it."""

import json
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from celery import Celery

from tasks.messaging.queues import celery_settings
from tasks.task_settings import TaskSettings
from tests.support.people.receivers import SECRET, verified
from tests.support.proxies.own_servers import OwnServer, taking_requests
from tests.support.stack.stack import POLICY, Fleet
from tests.support.stack.waiting import eventually

pytestmark = pytest.mark.e2e
NEXT_SECRET, STRANGERS_SECRET = (f"whsec_{b64encode(32 * letter).decode()}" for letter in (b"n", b"s"))


class OtherSystem(OwnServer):
    """Runs "replicas" that are but rows in a dictionary, and reports each through the broker."""

    def __init__(self, environment: dict[str, str]) -> None:
        super().__init__(_Webhook)
        self.asked: list[dict[str, Any]] = []
        self.running: dict[str, str] = {}
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self.is_deaf = False
        self._producer = Celery(set_as_current=False)
        self._producer.conf.update(celery_settings(TaskSettings.from_environment(environment)))

    @property
    def url(self) -> str:
        return f"http://{self.address}/replicas"

    def do(self, asked: dict[str, Any]) -> None:
        self.asked.append(asked)
        if self.is_deaf:
            return
        route, action = asked["route_id"], asked["action"]
        if action == "start":
            self.running[route] = asked["revision"]
            self.report(route, status="healthy", address=f"127.0.0.1:{20_000 + len(self.asked)}")
        elif self.running.pop(route, None):
            self.report(route, status="stopped")

    def report(self, route: str, **payload: str) -> None:
        message = {"request_id": uuid4().hex, "actor": "other-system", "route_id": route, **payload}
        self._producer.send_task(
            "rollway.report_route", kwargs={"payload": message}, queue="commands", ignore_result=True
        )

    def server_close(self) -> None:
        super().server_close()
        self._producer.close()


class _Webhook(BaseHTTPRequestHandler):
    server: OtherSystem

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        asked = json.loads(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.calls.append((headers, body))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.do(asked)


@pytest.fixture
def other(fleet: Fleet) -> Iterator[OtherSystem]:
    fleet.start_workers("worker1")
    fleet.start_beat()
    with other_system(fleet) as server:
        yield server


@contextmanager
def other_system(fleet: Fleet) -> Iterator[OtherSystem]:
    with OtherSystem(fleet.environment) as server, taking_requests(server):
        yield server


def add_revision(fleet: Fleet, other: OtherSystem, name: str) -> None:
    spec = {
        "runtime": "external",
        "external": {"webhook": other.url},
        "env": {"MODEL": name},
        "drain_seconds": 0.1,
        "stop_grace_seconds": 0.5,
    }
    fleet.ask("add_revision", deployment="gpu", name=name, spec=spec)


def serving(fleet: Fleet, revision: str) -> bool:
    state = fleet.state("gpu")["lifecycle"]
    return state == "ready" and fleet.serving("gpu") == [revision] * 2


def deploy(fleet: Fleet, other: OtherSystem) -> None:
    fleet.ask("create_deployment", deployment="gpu", desired_replicas=2, policy=POLICY)
    add_revision(fleet, other, "v1")
    fleet.ask("activate_revision", deployment="gpu", revision="v1")
    eventually(lambda: serving(fleet, "v1"), what="two external replicas")


def test_a_rollout_over_replicas_of_another_system(fleet: Fleet, other: OtherSystem) -> None:
    deploy(fleet, other)
    first = other.asked[0]
    assert (first["action"], first["deployment"], first["revision"]) == ("start", "gpu", "v1")
    assert first["env"] == {"MODEL": "v1"}
    add_revision(fleet, other, "v2")
    fleet.ask("activate_revision", deployment="gpu", revision="v2")
    eventually(lambda: serving(fleet, "v2"), what="the rollout to end")
    eventually(lambda: sorted(other.running.values()) == ["v2", "v2"], what="the old ones to be stopped")
    assert [asked["action"] for asked in other.asked].count("start") == 4, "each is asked for once"
    eventually(lambda: all(route["stopped_at"] for route in fleet.routes("gpu", "terminated terminating")), what="ends")


def is_signed(other: OtherSystem, secret: str) -> list[bool]:
    """Of each call, whether a receiver with that secret takes it."""
    return ["webhook-id" in headers and verified(secret, headers, body, time.time()) for headers, body in other.calls]


def test_calls_are_signed_with_the_keys_of_the_target_that_they_go_to(fleet: Fleet, tmp_path: Path) -> None:
    with other_system(fleet) as other:
        file = tmp_path / "webhooks"
        file.write_text(f"gpus = {other.url} {SECRET} {NEXT_SECRET}\n")
        file.chmod(0o600)
        fleet.start_workers("worker1", ROLLWAY_WEBHOOKS=str(file))
        fleet.start_beat()
        deploy(fleet, other)
        assert [is_signed(other, secret) for secret in (SECRET, NEXT_SECRET)] == [[True, True]] * 2
        assert is_signed(other, STRANGERS_SECRET) == [False, False]


def test_without_a_target_calls_are_not_signed(fleet: Fleet, other: OtherSystem) -> None:
    deploy(fleet, other)
    assert is_signed(other, SECRET) == [False, False]


def test_a_replica_that_is_reported_failed_is_replaced(fleet: Fleet, other: OtherSystem) -> None:
    deploy(fleet, other)
    lost = str(fleet.routes("gpu")[0]["id"])
    other.report(lost, status="failed")
    eventually(lambda: serving(fleet, "v1") and lost not in other.running, what="another one in its place")
    assert "stop" in [asked["action"] for asked in other.asked if asked["route_id"] == lost]


def test_without_a_health_check_a_replica_is_as_it_was_reported(fleet: Fleet, other: OtherSystem) -> None:
    deploy(fleet, other)
    sick = fleet.routes("gpu")[0]["id"]
    other.report(str(sick), status="unhealthy")
    eventually(lambda: fleet.routes("gpu", "unhealthy"), what="the report")
    fleet.ask("scale", deployment="gpu", desired_replicas=3)
    eventually(lambda: len(fleet.serving("gpu")) == 2, what="a third one, for which all are looked at every second")
    other.report(str(fleet.routes("gpu")[0]["id"]), status="failed")
    eventually(lambda: len(fleet.all_routes("gpu")) == 4 and len(fleet.serving("gpu")) == 2, what="a fourth")
    assert [route["id"] for route in fleet.routes("gpu", "unhealthy")] == [sick]


def test_a_system_that_never_answers_holds_no_drain_for_ever(fleet: Fleet, other: OtherSystem) -> None:
    deploy(fleet, other)
    other.is_deaf = True
    fleet.ask("destroy", deployment="gpu")
    eventually(lambda: fleet.rows("SELECT FROM deployments WHERE lifecycle = 'destroyed'"), what="the end")
    actions = [asked["action"] for asked in other.asked]
    assert (actions.count("stop"), actions.count("kill")) == (2, 2)
