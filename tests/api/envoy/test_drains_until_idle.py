"""Draining replicas behind a real Envoy: no new request, the answers under way told until the last has ended."""

import os
import socket
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from socketserver import StreamRequestHandler
from typing import Any, LiteralString
from uuid import UUID

import httpx
import pytest
from psycopg.types.json import Jsonb

from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge, envoy_process
from tests.support.proxies.own_servers import own_server
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.rows.deployments import read, write
from tests.support.stack.server_process import running
from tests.support.stack.waiting import eventually


@pytest.fixture
def clients() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


def told(edge: Edge, route: UUID) -> tuple[int, int] | None:
    """Answers under way, and for how many looks there were none; None before the first look."""
    rows = read(edge.routes.engine, "SELECT under_way, idle_looks FROM drain_looks WHERE route_id = %s", route)
    return (rows[0]["under_way"], rows[0]["idle_looks"]) if rows else None


def is_idle(edge: Edge, route: UUID) -> bool:
    return (told(edge, route) or (0, 0))[1] >= 2


def stream(clients: ThreadPoolExecutor, url: str, replica: Replica) -> Future[httpx.Response]:
    """An answer of this replica that has begun."""
    before = replica.served["GET"]
    answer = clients.submit(plain_http.get, url, timeout=120)
    eventually(lambda: replica.served["GET"] > before)
    return answer


def test_an_answer_under_way_is_told_until_it_ends_and_no_new_request_comes(
    envoy_edge: Edge, clients: ThreadPoolExecutor
) -> None:
    with replicas("leaves") as (leaves,):
        made = envoy_edge.make("■", leaves, n=0)
        url = f"{envoy_edge.envoy.url}/{made.name}/"
        eventually(lambda: plain_http.get(url).status_code == 200)
        leaves.may_end.clear()
        answer = stream(clients, url, leaves)
        envoy_edge.routes.drain(*made.routes)
        eventually(lambda: envoy_edge.routes.released(*made.routes))
        asked = leaves.served["GET"]
        assert [plain_http.get(url).status_code for _ in range(10)] == [503] * 10, "all of them leave"
        eventually(lambda: told(envoy_edge, made.routes[0]) == (1, 0))
        query = "SELECT told_at IS NOT NULL AS known FROM proxies WHERE node_id = 'edge-1'"
        assert read(envoy_edge.routes.engine, query) == [{"known": True}], "it is waited for from now on"
        leaves.may_end.set()
        assert answer.result().json()["replica"] == "leaves"
        eventually(lambda: is_idle(envoy_edge, made.routes[0]))
        assert leaves.served["GET"] == asked


RULES: LiteralString = "UPDATE deployments SET rules = %s WHERE id = %s"


@pytest.mark.parametrize(
    "rules",
    [{"sticky": {"cookie": "mine"}}, {"hold_seconds": 20, "hold_callers": 7}],
    ids=lambda rules: next(iter(rules)),
)
def test_an_answer_that_began_before_a_cluster_was_made_anew_is_waited_for(
    envoy_edge: Edge, clients: ThreadPoolExecutor, rules: dict[str, Any]
) -> None:
    """Envoy forgets it, and tells of that replica that nothing is under way."""
    with replicas("leaves", "stays") as (leaves, stays):
        made = envoy_edge.make("■", leaves, n=0)
        url = f"{envoy_edge.envoy.url}/{made.name}/"
        envoy_edge.wait_for(f"/{made.name}/")
        leaves.may_end.clear()
        answer = stream(clients, url, leaves)
        write(envoy_edge.routes.engine, RULES, Jsonb(rules), made.id)
        other = envoy_edge.make("■", stays, n=1)
        envoy_edge.wait_for(f"/{other.name}/")  # told of after the rules
        envoy_edge.routes.drain(*made.routes)
        eventually(lambda: told(envoy_edge, made.routes[0]) == (1, 0))
        leaves.may_end.set()
        assert answer.result().json()["replica"] == "leaves"
        eventually(lambda: is_idle(envoy_edge, made.routes[0]))


_HEAD = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


@pytest.fixture
def echo() -> Iterator[str]:
    """The address of a replica that turns to a WebSocket whatever it is asked, and says again what it hears."""

    class Echo(StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\n" + _HEAD)
            while heard := self.connection.recv(100):
                self.wfile.write(heard)

    with own_server(Echo) as server:
        yield server.address


def test_a_websocket_on_a_replica_that_leaves_carries_on_until_its_caller_ends_it(envoy_edge: Edge, echo: str) -> None:
    made = envoy_edge.make("■", echo, n=0)
    route = made.routes[0]

    def opened() -> tuple[socket.socket, bytes]:
        client = socket.create_connection(("127.0.0.1", envoy_edge.envoy.port), timeout=10)
        client.sendall(f"GET /{made.name}/ HTTP/1.1\r\nHost: a\r\n".encode() + _HEAD)
        return client, client.recv(4096)

    def is_open() -> bool:
        client, said = opened()
        client.close()
        return said.startswith(b"HTTP/1.1 101")

    eventually(is_open)
    client, said = opened()
    with client:
        assert said.startswith(b"HTTP/1.1 101")
        envoy_edge.routes.drain(route)
        eventually(lambda: envoy_edge.routes.released(route))
        eventually(lambda: told(envoy_edge, route) == (1, 0))
        for word in (b"one", b"two"):
            client.sendall(word)
            assert client.recv(100) == word
    eventually(lambda: is_idle(envoy_edge, route))


def test_beside_a_sick_replica_none_that_leaves_gets_a_request(envoy_edge: Edge) -> None:
    with replicas("leaves", "sick") as (leaves, sick):
        made = envoy_edge.make("■▲", leaves, sick, n=0)
        path = f"/{made.name}/"
        eventually(lambda: envoy_edge.ask(path).status_code == 200)
        envoy_edge.routes.drain(made.routes[0])
        eventually(lambda: envoy_edge.routes.released(made.routes[0]))
        asked = leaves.served["GET"]
        assert {envoy_edge.ask(path).json()["replica"] for _ in range(20)} == {"sick"}
        assert leaves.served["GET"] == asked
        eventually(lambda: is_idle(envoy_edge, made.routes[0]))


def test_of_two_proxies_the_busy_one_is_waited_for_and_a_dead_one_until_its_silence(
    envoy_edge: Edge, clients: ThreadPoolExecutor, tmp_path: Path
) -> None:
    with replicas("leaves") as (leaves,):
        made, second = envoy_edge.make("■", leaves, n=0), envoy_process(envoy_edge.api, tmp_path, "edge-2")
        with running(second):
            url = f"{second.url}/{made.name}/"
            eventually(lambda: plain_http.get(url).status_code == 200)
            leaves.may_end.clear()
            answer = stream(clients, url, leaves)
            envoy_edge.routes.drain(*made.routes)
            eventually(lambda: told(envoy_edge, made.routes[0]) == (1, 0))
            second.end(kill=True)
            with pytest.raises(httpx.TransportError):
                answer.result()
            assert told(envoy_edge, made.routes[0]) == (1, 0), "what it told last holds until it counts no more"
            eventually(lambda: is_idle(envoy_edge, made.routes[0]))
            assert envoy_edge.known() >= {"edge-1", "edge-2"}


def test_an_answer_that_a_restarted_envoy_left_to_its_old_process_is_waited_for(
    envoy_edge: Edge, clients: ThreadPoolExecutor, tmp_path: Path
) -> None:
    times = ("--drain-time-s", "1", "--drain-strategy", "immediate", "--parent-shutdown-time-s", "60")
    old = envoy_process(envoy_edge.api, tmp_path, "edge-hot", ("--base-id", str(os.getpid()), *times))
    new = replace(old, command=[*old.command, "--restart-epoch", "1"])
    with replicas("leaves") as (leaves,), running(old):
        made = envoy_edge.make("■", leaves, n=0)
        (route,) = made.routes
        url = f"{old.url}/{made.name}/"
        eventually(lambda: plain_http.get(url).status_code == 200)
        leaves.may_end.clear()
        answer = stream(clients, url, leaves)
        with running(new):
            eventually(lambda: new.stat("server.hot_restart_generation") == 2)
            envoy_edge.routes.drain(route)
            eventually(lambda: envoy_edge.routes.released(route))
            looks = "http.rollway-stats.downstream_rq_2xx"
            before = new.stat(looks)
            eventually(lambda: new.stat(looks) > before + 6)
            assert told(envoy_edge, route) in (None, (1, 0)), "by nobody, or by the old process with its last word"
            leaves.may_end.set()
            assert answer.result().json()["replica"] == "leaves"
            eventually(lambda: is_idle(envoy_edge, route))
