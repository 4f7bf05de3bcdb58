"""Who shows no token of the node id that it uses is refused: nobody delays or releases a drain by asking."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import grpc
import pytest

from db.connection.transactions import in_transaction
from db.proxies.acks import list_proxies
from domain.traffic.nodes import token_of
from stack.home.folder import project_root
from tests.support.people.asking import KEY, with_token
from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge, envoy_process
from tests.support.proxies.streaming import Node
from tests.support.rows.deployments import Made
from tests.support.stack.server_process import Process, running
from tests.support.stack.waiting import eventually
from traffic.resources import ResourceKind

PAGES = ("/traefik", "/prometheus/targets", "/v1/traffic")


def refusal(api: Process, node_id: str, token: str, nonce: str = "") -> tuple[grpc.StatusCode, str]:
    """How a stream of this proxy with this token ends."""
    with Node(api, node_id, token) as node:
        node.say(ResourceKind.CLUSTERS, response_nonce=nonce)
        with pytest.raises(grpc.RpcError) as refused:
            node.hear()
    return refused.value.code(), str(refused.value.details())


@contextmanager
def meanwhile(*asking: Callable[[], object]) -> Iterator[None]:
    """Strangers ask again and again."""
    over = Event()

    def ask_on(ask: Callable[[], object]) -> None:
        while not over.is_set():
            ask()

    with ThreadPoolExecutor(len(asking)) as threads:
        work = [threads.submit(ask_on, ask) for ask in asking]
        try:
            yield
        finally:
            over.set()
        for future in work:
            future.result()


def test_a_request_without_its_token_is_refused_with_a_sentence_and_nothing_is_noted(envoy_edge: Edge) -> None:
    of_another = token_of("edge-2", KEY)
    code, sentence = refusal(envoy_edge.api, "edge-3", "")
    assert (code, "proxy-token" in sentence) == (grpc.StatusCode.UNAUTHENTICATED, True)
    code, sentence = refusal(envoy_edge.api, "edge-3", of_another)
    assert (code, "another id" in sentence) == (grpc.StatusCode.PERMISSION_DENIED, True)
    for path in PAGES:
        assert plain_http.get(f"{envoy_edge.api.url}{path}", params={"node": "edge-3"}).status_code == 401
        asked = {"node": "edge-3", "token": of_another}
        assert plain_http.get(f"{envoy_edge.api.url}{path}", params=asked).status_code == 403
        allowed = {**with_token("edge-3"), "poll_seconds": "0.1"}
        assert plain_http.get(f"{envoy_edge.api.url}{path}", params=allowed).status_code == 200
    eventually(lambda: "edge-3" in envoy_edge.known())  # by its /traefik, with the token
    assert "edge-2" not in envoy_edge.known()
    told = plain_http.get(f"{envoy_edge.api.url}/metrics").text
    assert "rollway_strangers_refused_total" in told
    assert "edge-3" not in told


def test_a_forger_neither_delays_nor_releases_a_drain(envoy_edge: Edge, eight_replicas: Made) -> None:
    usual = max(envoy_edge.seconds_of_a_drain(route) for route in eight_replicas.routes[:3])
    forged = [
        lambda: refusal(envoy_edge.api, "edge-1", token_of("edge-9", KEY), "1"),
        lambda: plain_http.get(f"{envoy_edge.api.url}/traefik", params={"node": "edge-1"}),
        lambda: plain_http.get(f"{envoy_edge.api.url}/traefik", params={"node": "ghost", "poll_seconds": 60}),
    ]
    with meanwhile(*forged):
        assert max(envoy_edge.seconds_of_a_drain(route) for route in eight_replicas.routes[3:6]) < 20 * usual + 1
        envoy_edge.envoy.freeze()
        try:
            envoy_edge.routes.drain(eight_replicas.routes[6])
            time.sleep(1)
            assert not envoy_edge.routes.released(eight_replicas.routes[6]), "only the Envoy itself can acknowledge"
        finally:
            envoy_edge.envoy.thaw()
    eventually(lambda: envoy_edge.routes.released(eight_replicas.routes[6]))
    assert "ghost" not in envoy_edge.known()


def test_the_id_of_an_envoy_is_no_id_for_traefik(envoy_edge: Edge, eight_replicas: Made) -> None:
    answer = plain_http.get(f"{envoy_edge.api.url}/traefik", params=with_token("edge-1"))
    assert (answer.status_code, "of an Envoy" in answer.json()["detail"]) == (409, True)
    envoy_edge.seconds_of_a_drain(eight_replicas.routes[0])
    for field, value in (("poll_seconds", "61"), ("throttle_seconds", "61"), ("throttle_seconds", "nan")):
        wrong = plain_http.get(f"{envoy_edge.api.url}/traefik", params={**with_token("t"), field: value})
        assert (wrong.status_code, wrong.json()["detail"].partition(":")[0]) == (422, field)


def test_no_pages_of_the_framework_are_served(envoy_edge: Edge) -> None:
    statuses = [
        plain_http.get(f"{envoy_edge.api.url}{path}").status_code for path in ("/docs", "/redoc", "/openapi.json")
    ]
    assert statuses == [404, 404, 404]


def test_a_server_that_other_machines_reach_does_not_start_without_a_key() -> None:
    stores = {"DATABASE_URL": "postgresql://localhost/x", "REDIS_URL": "redis://localhost"}
    done = subprocess.run(
        [sys.executable, "-m", "api"],
        env={**stores, "ROLLWAY_API_HOST": "0.0.0.0"},
        cwd=project_root(),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("ROLLWAY_PROXY_KEY is not set, and other machines reach 0.0.0.0: set it to a secret")


def test_an_envoy_that_is_refused_does_not_ask_on_at_once(envoy_edge: Edge, tmp_path: Path) -> None:
    stranger = envoy_process(envoy_edge.api, tmp_path, "edge-4")
    config = tmp_path / "edge-4.yaml"
    config.write_text(config.read_text().replace(token_of("edge-4", KEY), token_of("edge-4", "another key")))

    def refused() -> float:
        told = plain_http.get(f"{envoy_edge.api.url}/metrics").text
        return float(told.partition("\nrollway_strangers_refused_total ")[2].split()[0])

    before = refused()
    stranger.process = subprocess.Popen(stranger.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: refused() > before)
        time.sleep(3)
        assert refused() - before < 40, "it pauses, up to a second"
    finally:
        stranger.end(kill=True)


def test_two_envoys_with_one_id_are_noticed(envoy_edge: Edge, tmp_path: Path) -> None:
    second = envoy_process(envoy_edge.api, tmp_path, "edge-1")

    def is_noticed() -> bool:
        envoy_edge.make("■", "127.0.0.1:1")  # a cluster more, which both ask for at once
        found = in_transaction(envoy_edge.routes.engine, list_proxies)
        return any(proxy.is_doubled for proxy in found if proxy.node_id == "edge-1")

    with running(second):
        eventually(is_noticed)
