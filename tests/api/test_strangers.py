"""Who shows no token of the node id that it uses is refused: nobody delays or releases a drain by asking."""

import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import httpx
import pytest

from db.engine import in_transaction
from db.proxies.acks import list_proxies
from domain.traffic.nodes import token_of
from stack.home import project_root
from tests.support import plain_http
from tests.support.asking import KEY, page, with_token
from tests.support.deployments import Made, read
from tests.support.edge import Edge
from tests.support.polling import Node
from tests.support.server_process import Process
from tests.support.waiting import eventually

PAGES = ("/traefik", "/prometheus/targets", "/v1/traffic")


def poll(api: Process, node: object, token: str, version: str = "") -> httpx.Response:
    asked = {"node": {"id": node, "metadata": {"rollway_token": token}}, "version_info": version}
    return plain_http.post(f"{api.url}/v3/discovery:clusters", json=asked, timeout=2)


@contextmanager
def meanwhile(*asking: object) -> Iterator[None]:
    """Strangers ask again and again."""
    over = Event()

    def ask_on(ask: object) -> None:
        while not over.is_set():
            ask()  # type: ignore[operator]

    with ThreadPoolExecutor(len(asking)) as threads:
        work = [threads.submit(ask_on, ask) for ask in asking]
        try:
            yield
        finally:
            over.set()
        for future in work:
            future.result()


def test_a_request_without_its_token_is_refused_with_a_sentence_and_nothing_is_noted(edge: Edge) -> None:
    of_another = token_of("edge-2", KEY)
    assert poll(edge.api, "edge-3", "").status_code == 401
    assert "proxy-token" in poll(edge.api, "edge-3", "").json()["detail"]
    assert poll(edge.api, "edge-3", of_another).status_code == 403
    assert "another id" in poll(edge.api, "edge-3", of_another).json()["detail"]
    for path in PAGES:
        assert plain_http.get(f"{edge.api.url}{path}", params={"node": "edge-3"}).status_code == 401
        asked = {"node": "edge-3", "token": of_another}
        assert plain_http.get(f"{edge.api.url}{path}", params=asked).status_code == 403
        assert plain_http.get(f"{edge.api.url}{path}", params=with_token("edge-3")).status_code == 200
    eventually(lambda: "edge-3" in edge.known())  # by its /traefik, with the token
    assert "edge-2" not in edge.known()
    told = plain_http.get(f"{edge.api.url}/metrics").text
    assert "rollway_strangers_refused_total" in told
    assert "edge-3" not in told


def test_a_forger_neither_delays_nor_releases_a_drain(edge: Edge, many: Made) -> None:
    usual = max(edge.seconds_of_a_drain(route) for route in many.routes[:3])
    forged = [
        lambda: poll(edge.api, "edge-1", token_of("edge-9", KEY), page(edge.api.url, "/v1/traffic").json()["version"]),
        lambda: plain_http.get(f"{edge.api.url}/traefik", params={"node": "edge-1"}),
        lambda: plain_http.get(f"{edge.api.url}/traefik", params={"node": "ghost", "poll_seconds": 60}),
    ]
    with meanwhile(*forged):
        assert max(edge.seconds_of_a_drain(route) for route in many.routes[3:6]) < 20 * usual + 1
        edge.envoy.freeze()
        try:
            edge.routes.drain(many.routes[6])
            time.sleep(1)
            assert not edge.routes.released(many.routes[6]), "only the Envoy itself can acknowledge"
        finally:
            edge.envoy.thaw()
    eventually(lambda: edge.routes.released(many.routes[6]))
    assert "ghost" not in edge.known()


def test_the_id_of_an_envoy_is_no_id_for_traefik(edge: Edge, many: Made) -> None:
    answer = plain_http.get(f"{edge.api.url}/traefik", params=with_token("edge-1"))
    assert (answer.status_code, "of an Envoy" in answer.json()["detail"]) == (409, True)
    edge.seconds_of_a_drain(many.routes[0])
    too_long = plain_http.get(f"{edge.api.url}/traefik", params={**with_token("t"), "poll_seconds": 61})
    assert (too_long.status_code, too_long.json()["detail"].partition(":")[0]) == (422, "poll_seconds")


def test_no_pages_of_the_framework_are_served(edge: Edge) -> None:
    statuses = [plain_http.get(f"{edge.api.url}{path}").status_code for path in ("/docs", "/redoc", "/openapi.json")]
    assert statuses == [404, 404, 404]


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({"ROLLWAY_API_HOST": "0.0.0.0"}, "ROLLWAY_PROXY_KEY is not set, and other machines reach 0.0.0.0"),
        ({"ROLLWAY_PROXY_KEY": "too short"}, "ROLLWAY_PROXY_KEY must be a secret of at least 32 characters"),
    ],
)
def test_a_server_that_other_machines_reach_does_not_start_without_a_key(
    environment: dict[str, str], sentence: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "api"],
        env={"DATABASE_URL": "postgresql://localhost/x", "REDIS_URL": "redis://localhost", **environment},
        cwd=project_root(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "too short" not in done.stderr


def test_two_proxies_with_one_id_are_noticed(edge: Edge) -> None:
    first, second = Node(edge.api), Node(edge.api)
    second.id = first.id

    def is_doubled() -> bool:
        found = in_transaction(edge.routes.engine, list_proxies)
        return any(proxy.is_doubled for proxy in found if proxy.node_id == first.id)

    with ThreadPoolExecutor() as threads:
        for _ in range(3):
            held = [threads.submit(node.take, "clusters") for node in (first, second)]
            for future in held:
                future.result()
            held_on = [threads.submit(node.poll, "clusters") for node in (first, second)]
            edge.make("■", "127.0.0.1:1")
            for holding in held_on:
                assert holding.result()
            first.held.clear()
            second.held.clear()
    eventually(is_doubled)
    assert read(edge.routes.engine, "SELECT node_id FROM proxies WHERE is_doubled AND node_id = 'edge-1'") == []
