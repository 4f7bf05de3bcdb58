"""A replica that hangs or hangs up is left alone by Envoy, and a sick one that answers callers is noted."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

import httpx
import pytest

from db.connection.transactions import database_now, in_transaction
from domain.handlers.dispatch import cycle
from stack.home.folder import project_root
from tests.support.people.asking import page
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import Made, read, snapshot, write
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import suspend
from tests.support.stack.waiting import eventually

HEDGE_AFTER = 0.5


@dataclass
class Service:
    """A replica of the example service, as a process."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def services() -> Iterator[list[Service]]:
    script = project_root() / "examples" / "http_service.py"
    started = []
    for number in range(4):
        port = free_port()
        env = {**os.environ, "PORT": str(port), "HOST": "127.0.0.1", "VERSION": str(number)}
        started.append(
            Service(port, subprocess.Popen([sys.executable, str(script)], env=env, stderr=subprocess.DEVNULL))
        )
    for service in started:
        eventually(lambda at=service.address: plain_http.get(f"http://{at}/health").status_code == 200)  # type: ignore[misc]
    yield started
    for service in started:
        service.process.kill()
        service.process.wait()


@pytest.fixture
def web(envoy_edge: Edge, services: list[Service]) -> Made:
    made = envoy_edge.make("■" * 4, *[service.address for service in services])
    wait_for_all(envoy_edge, made)
    hedge_after(envoy_edge, made, HEDGE_AFTER)
    return made


def hedge_after(edge: Edge, made: Made, seconds: float | None) -> None:
    """From when this returns on; requests are answered before and after alike."""
    before = page(edge.api.url, "/v1/traffic").json()["version"]
    write(edge.routes.engine, "UPDATE deployments SET hedge_after_seconds = %s WHERE id = %s", seconds, made.id)
    edge.routes.tell()

    def is_taken_over() -> bool:
        told = page(edge.api.url, "/v1/traffic").json()
        return told["version"] != before and all(proxy["is_current"] for proxy in told["proxies"])

    eventually(is_taken_over)


def wait_for_all(edge: Edge, made: Made) -> None:
    eventually(lambda: {who(ask(edge, made)) for _ in range(40)} == {"0", "1", "2", "3"})


def ask(edge: Edge, made: Made, method: str = "GET", path: str = "") -> httpx.Response:
    return plain_http.request(method, f"{edge.envoy.url}/{made.name}/{path}", timeout=20)


def who(answer: httpx.Response) -> str:
    return str(answer.json()["version"]) if answer.status_code == 200 else str(answer.status_code)


@contextmanager
def frozen(service: Service) -> Iterator[None]:
    suspend(service.process.pid)
    try:
        yield
    finally:
        service.process.send_signal(signal.SIGCONT)


def test_requests_to_a_frozen_replica_are_answered_by_others_and_soon_none_goes_there(
    envoy_edge: Edge, web: Made, services: list[Service]
) -> None:
    with frozen(services[0]), ThreadPoolExecutor(8) as threads:

        def is_left_alone() -> bool:
            asked = [threads.submit(ask, envoy_edge, web) for _ in range(60)]
            assert {who(future.result()) for future in asked} <= {"1", "2", "3"}, "late, and none lost"
            return envoy_edge.envoy.stat(f"cluster.{web.name}.outlier_detection.ejections_active") == 1

        # the more it holds, the less it is asked: three in a row may take a hundred requests
        eventually(is_left_alone)
        later = [threads.submit(ask, envoy_edge, web, "POST", "what-is-there-not") for _ in range(24)]
        assert {future.result().status_code for future in later} == {404}, "nobody hedges these, and none went there"


def test_a_slow_answer_is_no_hung_replica(envoy_edge: Edge, web: Made) -> None:
    """The first request continues when the second is sent, so that an answer takes as long as it takes."""
    assert who(ask(envoy_edge, web, path=f"slow?seconds={3 * HEDGE_AFTER}")) in {"0", "1", "2", "3"}


def test_without_hedging_requests_wait_for_the_hung_replica(
    envoy_edge: Edge, web: Made, services: list[Service]
) -> None:
    hedge_after(envoy_edge, web, None)
    wait_for_all(envoy_edge, web)
    asked = 40
    with ThreadPoolExecutor(asked) as threads:  # each has a thread of its own, so that none waits for one that waits
        with frozen(services[0]):
            sent = [threads.submit(ask, envoy_edge, web) for _ in range(asked)]
            eventually(lambda: sum(future.done() for future in sent) >= asked / 2)
            time.sleep(3 * HEDGE_AFTER)
            assert not all(future.done() for future in sent), "those wait for it"
        assert {who(future.result()) for future in sent} <= {"0", "1", "2", "3"}


SICK: LiteralString = """
    UPDATE routes SET status = 'unhealthy', status_changed_at = now() - %s * interval '1 second',
           kept_until = CASE WHEN %s THEN now() - %s * interval '1 second' END
     WHERE id = %s
"""
"""As the prober finds one: the third says whether its probes ended without an answer."""


def sick(edge: Edge, route: UUID, seconds: float = 20, *, is_late: bool = True) -> None:
    write(edge.routes.engine, SICK, seconds, is_late, seconds, route)
    edge.routes.tell()


def of(edge: Edge, route: UUID) -> dict[str, Any]:
    query = "SELECT kept_until > status_changed_at AS is_answering FROM routes WHERE id = %s"
    (row,) = read(edge.routes.engine, query, route)
    return row


def test_a_sick_replica_is_answering_once_proxies_have_seen_an_answer_of_it(envoy_edge: Edge) -> None:
    with replicas("busy") as (busy,):
        made = envoy_edge.make("■", busy, n=1)
        (route,), path = made.routes, f"/{made.name}/"
        envoy_edge.wait_for(path)
        sick(envoy_edge, route)

        def is_noted() -> bool:
            assert envoy_edge.ask(path).status_code == 200, "where all are sick all get requests"
            return bool(of(envoy_edge, route)["is_answering"])

        eventually(is_noted, 30)
        write(envoy_edge.routes.engine, "UPDATE routes SET status_changed_at = status_changed_at - interval '1 minute'")
        decision = cycle(
            snapshot(envoy_edge.routes.engine, made.id), in_transaction(envoy_edge.routes.engine, database_now)
        )
        assert not decision.changes
        assert "1 unhealthy, 1 of them answering callers" in decision.reason


def test_what_fails_hangs_or_answers_its_probes_is_answering_nobody(envoy_edge: Edge) -> None:
    with replicas("fails", "hangs", "ill", "busy") as every:
        made = [envoy_edge.make("■", replica, n=1) for replica in every]
        paths, routes = [f"/{each.name}/" for each in made], [each.routes[0] for each in made]
        for path in paths:
            envoy_edge.wait_for(path)
        fails, _, _, _ = every
        fails.status = 500
        for route in routes:
            sick(envoy_edge, route, is_late=route is not routes[2])

        def is_noted() -> bool:
            for path in (paths[0], paths[2], paths[3]):
                envoy_edge.ask(path)
            return bool(of(envoy_edge, routes[3])["is_answering"])

        eventually(is_noted, 30)
        assert [of(envoy_edge, route)["is_answering"] for route in routes] == [False, False, None, True]
