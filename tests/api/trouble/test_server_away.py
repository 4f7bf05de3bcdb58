"""The server for proxies, Redis, Postgres or an Envoy is killed, frozen or talks nonsense: nobody loses a request."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from api.proxies.protobuf import DiscoveryResource, DiscoveryResponse, handler_of
from db.connection.transactions import transaction
from tests.support.people.asking import page
from tests.support.proxies import plain_http
from tests.support.proxies.edge import EdgeRoutes, discovery_port, envoy_process
from tests.support.proxies.web_replicas import replicas
from tests.support.rows.deployments import make_deployment, write
from tests.support.stack.server_process import Process, running
from tests.support.stack.servers import EmbeddedServer
from tests.support.stack.waiting import eventually


class Nonsense:
    """Says on every stream what Envoy cannot use, and breaks it off; `said` has what."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def tell(self, requests: Iterator[Any], context: grpc.ServicerContext) -> Iterator[Any]:
        url = next(requests).type_url
        for wrong in (
            DiscoveryResource(name="web", version="x", resource={"type_url": "what", "value": b"\xff"}),
            DiscoveryResource(name="web", version="x", resource={"type_url": url, "value": b"\xff\xff"}),
            DiscoveryResource(name="web", version="x", resource={"type_url": url, "value": b""}),
        ):
            self.said.append(str(wrong))
            yield DiscoveryResponse(type_url=url, nonce=f"n{len(self.said)}", resources=[wrong])
            next(requests)
        context.abort(grpc.StatusCode.INTERNAL, "nonsense")


@contextmanager
def nonsense(port: int) -> Iterator[list[str]]:
    """A server of nonsense; yields what it has said."""
    talks = Nonsense()
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((handler_of(talks.tell),))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    try:
        yield talks.said
    finally:
        server.stop(None).wait()


def test_envoy_goes_on_without_its_server_and_catches_up_when_it_is_back(
    routes: EdgeRoutes, api: Process, envoy: Process
) -> None:
    with replicas("one", "two", "three") as (first, second, third):
        web = make_deployment(routes.engine, "■■■", n=1)
        for route, replica in zip(web.routes, (first, second, third), strict=True):
            routes.at(route, replica.address)
        routes.reached(web.id, "web")
        routes.tell()
        eventually(lambda: plain_http.get(f"{envoy.url}/web/").status_code == 200)

        api.end(kill=True)
        routes.drain(web.routes[0])
        assert {plain_http.get(f"{envoy.url}/web/").status_code for _ in range(20)} == {200}
        assert not routes.released(web.routes[0])

        with nonsense(discovery_port(api)) as said:
            eventually(lambda: len(said) > 5)
            assert {plain_http.get(f"{envoy.url}/web/").status_code for _ in range(20)} == {200}

        api.start()
        eventually(lambda: routes.released(web.routes[0]))
        first.close()
        assert {plain_http.get(f"{envoy.url}/web/").json()["replica"] for _ in range(20)} == {"two", "three"}

        # after the restart too, a change arrives and is acknowledged
        routes.drain(web.routes[1])
        eventually(lambda: routes.released(web.routes[1]))
        assert {plain_http.get(f"{envoy.url}/web/").json()["replica"] for _ in range(20)} == {"three"}


def test_a_restarted_server_claims_no_drain_that_an_envoy_has_not_heard_of(
    routes: EdgeRoutes, api: Process, envoy: Process
) -> None:
    """The Envoy is frozen with the old table; the drain is known once it has gone on and taken over the new one."""
    with replicas("one", "two") as (first, second):
        web = make_deployment(routes.engine, "■■", n=1)
        for route, replica in zip(web.routes, (first, second), strict=True):
            routes.at(route, replica.address)
        routes.reached(web.id, "web")
        routes.tell()
        eventually(lambda: plain_http.get(f"{envoy.url}/web/").status_code == 200)
        api.end(kill=True)
        envoy.freeze()
        routes.drain(web.routes[0])
        api.start()
        eventually(lambda: page(api.url, "/v1/traffic").json()["services"][0]["live"][0]["ip"])
        for _ in range(3):
            plain_http.get(f"{api.url}/metrics")
            routes.tell()
        assert not routes.released(web.routes[0])
        envoy.thaw()
        eventually(lambda: routes.released(web.routes[0]))


@pytest.mark.usefixtures("envoy")
def test_two_envoys_are_both_waited_for_and_one_that_died_is_not_for_long(
    routes: EdgeRoutes, api: Process, tmp_path: Path
) -> None:
    with replicas("one") as (replica,):
        web = make_deployment(routes.engine, "■■■■", n=1)
        for route in web.routes:
            routes.at(route, replica.address)
        routes.reached(web.id, "web")
        second = envoy_process(api, tmp_path, "edge-2")
        with running(second):
            eventually(lambda: plain_http.get(f"{second.url}/web/").status_code == 200)
            routes.drain(web.routes[0])
            eventually(lambda: routes.released(web.routes[0]))
            second.freeze()
            routes.drain(web.routes[1])
            eventually(lambda: _knows_newest(api, "edge-1"))
            assert not routes.released(web.routes[1])
            second.thaw()
            eventually(lambda: routes.released(web.routes[1]))
        write(routes.engine, "UPDATE proxies SET silence_seconds = 1 WHERE node_id = 'edge-2'")
        routes.drain(web.routes[2])
        eventually(lambda: routes.released(web.routes[2]))


def _knows_newest(api: Process, node: str) -> bool:
    proxies = page(api.url, "/v1/traffic").json()["proxies"]
    return any(proxy["node"] == node and proxy["is_current"] for proxy in proxies)


def test_without_redis_and_postgres_the_last_table_is_served_on(
    routes: EdgeRoutes, api: Process, envoy: Process, redis_server: EmbeddedServer, postgres_server: EmbeddedServer
) -> None:
    with replicas("one", "two") as (first, second):
        web = make_deployment(routes.engine, "■■", n=1)
        for route, replica in zip(web.routes, (first, second), strict=True):
            routes.at(route, replica.address)
        routes.reached(web.id, "web")
        eventually(lambda: plain_http.get(f"{envoy.url}/web/").status_code == 200)

        redis_server.kill()
        eventually(lambda: plain_http.get(f"{api.url}/healthz").json()["redis"] != "ok")
        _drain_without_redis(routes, web.routes[0])
        eventually(lambda: routes.released(web.routes[0]))
        redis_server.start()
        eventually(lambda: plain_http.get(f"{api.url}/healthz").json()["redis"] == "ok")

        postgres_server.kill()
        eventually(lambda: plain_http.get(f"{api.url}/healthz").json()["status"] == "stale")
        health = plain_http.get(f"{api.url}/healthz")
        assert (health.status_code, health.json()["postgres"] == "ok") == (200, False)
        assert plain_http.get(f"{envoy.url}/web/").json()["replica"] == "two"
        postgres_server.start()
        eventually(lambda: plain_http.get(f"{api.url}/healthz").json()["status"] == "ok")
        routes.engine.dispose()
        eventually(lambda: plain_http.get(f"{envoy.url}/web/").json()["replica"] == "two")


def _drain_without_redis(routes: EdgeRoutes, route: object) -> None:
    query = """
        UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = clock_timestamp(),
                          drain_xid = pg_current_xact_id()
         WHERE id = %s
    """
    write(routes.engine, query, route)


@pytest.mark.usefixtures("envoy")
def test_sigterm_ends_the_server_at_once_though_a_stream_is_open(routes: EdgeRoutes, api: Process) -> None:
    make_deployment(routes.engine, "■", n=1)
    routes.tell()
    eventually(lambda: "rollway_proxy_streams 1.0" in plain_http.get(f"{api.url}/metrics").text)
    assert api.end() < 1
    assert api.process is not None
    assert api.process.returncode == -signal.SIGTERM  # as uvicorn ends, having let its connections go


def test_sigterm_ends_the_server_at_once_though_postgres_hangs(routes: EdgeRoutes, api: Process) -> None:
    with transaction(routes.engine) as connection:
        connection.execute("LOCK TABLE entrances, proxies, publishers IN ACCESS EXCLUSIVE MODE")
        eventually(lambda: plain_http.get(f"{api.url}/healthz").json()["table_age_seconds"] > 0.8)
        assert api.end() < 1.5
