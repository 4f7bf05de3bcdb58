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
from tests.support.deployments import Made, read, write
from tests.support.edge import KEY, Edge, Process, page, with_token
from tests.support.polling import Node
from tests.support.waiting import eventually
from tests.support.web_replicas import replicas

PAGES = ("/traefik", "/prometheus/targets", "/v1/traffic")


def poll(api: Process, node: object, token: str, version: str = "") -> httpx.Response:
    asked = {"node": {"id": node, "metadata": {"rollway_token": token}}, "version_info": version}
    return plain_http.post(f"{api.url}/v3/discovery:clusters", json=asked, timeout=2)


def sent(api: Process, body: bytes) -> httpx.Response:
    head = {"content-type": "application/json"}
    return plain_http.post(f"{api.url}/v3/discovery:clusters", content=body, headers=head)


def known(edge: Edge) -> set[str]:
    return {proxy.node_id for proxy in in_transaction(edge.routes.engine, list_proxies)}


def seconds_of_a_drain(edge: Edge, route: object) -> float:
    began = time.monotonic()
    write(
        edge.routes.engine,
        "UPDATE routes SET status = 'terminating', traffic_status = 'inactive', drain_started_at = clock_timestamp(),"
        " drain_xid = pg_current_xact_id() WHERE id = %s",
        route,
    )
    edge.routes.tell()
    eventually(lambda: edge.routes.released(route))  # type: ignore[arg-type]
    return time.monotonic() - began


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


@pytest.fixture
def web(edge: Edge) -> Iterator[Made]:
    with replicas("here") as (here,):
        made = edge.make("■" * 8, *[here] * 8)
        eventually(lambda: edge.ask(f"/{made.name}/").status_code == 200)
        yield made


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
    eventually(lambda: "edge-3" in known(edge))  # by its /traefik, with the token
    assert "edge-2" not in known(edge)
    told = plain_http.get(f"{edge.api.url}/metrics").text
    assert "rollway_strangers_refused_total" in told
    assert "edge-3" not in told


def test_a_forger_neither_delays_nor_releases_a_drain(edge: Edge, web: Made) -> None:
    usual = max(seconds_of_a_drain(edge, route) for route in web.routes[:3])
    forged = [
        lambda: poll(edge.api, "edge-1", token_of("edge-9", KEY), page(edge.api, "/v1/traffic").json()["version"]),
        lambda: plain_http.get(f"{edge.api.url}/traefik", params={"node": "edge-1"}),
        lambda: plain_http.get(f"{edge.api.url}/traefik", params={"node": "ghost", "poll_seconds": 60}),
    ]
    with meanwhile(*forged):
        assert max(seconds_of_a_drain(edge, route) for route in web.routes[3:6]) < 20 * usual + 1
        edge.envoy.freeze()
        try:
            write(
                edge.routes.engine,
                "UPDATE routes SET status = 'terminating', traffic_status = 'inactive',"
                " drain_started_at = clock_timestamp(), drain_xid = pg_current_xact_id() WHERE id = %s",
                web.routes[6],
            )
            edge.routes.tell()
            time.sleep(1)
            assert not edge.routes.released(web.routes[6]), "only the Envoy itself can acknowledge"
        finally:
            edge.envoy.thaw()
    eventually(lambda: edge.routes.released(web.routes[6]))
    assert "ghost" not in known(edge)


def test_the_id_of_an_envoy_is_no_id_for_traefik(edge: Edge, web: Made) -> None:
    answer = plain_http.get(f"{edge.api.url}/traefik", params=with_token("edge-1"))
    assert (answer.status_code, "of an Envoy" in answer.json()["detail"]) == (409, True)
    seconds_of_a_drain(edge, web.routes[0])
    too_long = plain_http.get(f"{edge.api.url}/traefik", params={**with_token("t"), "poll_seconds": 61})
    assert (too_long.status_code, too_long.json()["detail"].partition(":")[0]) == (422, "poll_seconds")


def test_what_postgres_or_json_cannot_hold_is_refused_with_the_name_of_the_field(edge: Edge, web: Made) -> None:
    usual = max(seconds_of_a_drain(edge, route) for route in web.routes[:2])
    bodies = [
        b'{"node": {"id": "x\\u0000y"}}',
        b'{"node": {"id": "\\ud800"}}',
        b'{"node": {"id": "x", "metadata": {"rollway_token": "\\ud800"}}}',
        b'{"node": {"id": "a b"}}',
        b'{"node": {"id": "\xc3\xbc"}}',
        b'{"node": {"id": NaN}}',
        b'{"node": {"id": "%s"}}' % (b"x" * 201),
        b'{"node": {"id": "x"}, "version_info": NaN}',
        b"[" * 5000,
        b"\xff\xfe",
    ]
    for body in bodies:
        answer = sent(edge.api, body)
        assert answer.status_code in (400, 422), body[:40]
        assert answer.json()["detail"]
    assert sent(edge.api, bodies[0]).json()["detail"].startswith("node.id: must be 1 to 200 printable ASCII characters")
    assert plain_http.get(f"{edge.api.url}/traefik?node=a%00b").status_code == 422
    assert seconds_of_a_drain(edge, web.routes[3]) < 20 * usual + 1


def test_a_proxy_that_postgres_refuses_stops_no_acknowledgement_of_another(edge: Edge, web: Made) -> None:
    usual = max(seconds_of_a_drain(edge, route) for route in web.routes[:2])
    engine = edge.routes.engine
    write(engine, "ALTER TABLE proxies ADD CONSTRAINT no_poison CHECK (node_id <> 'poison')")
    poison = Node(edge.api)
    poison.id = "poison"
    try:
        with ThreadPoolExecutor() as threads:
            held = threads.submit(poison.take, "clusters")
            eventually(lambda: plain_http.get(f"{edge.api.url}/healthz").json()["failed_writes"] > 0)
            assert max(seconds_of_a_drain(edge, route) for route in web.routes[2:5]) < 20 * usual + 1
            held.result()
        assert "rollway_proxy_writes_failed_total 0.0" not in plain_http.get(f"{edge.api.url}/metrics").text
        assert known(edge) >= {"edge-1"}
        eventually(lambda: plain_http.get(f"{edge.api.url}/healthz").json()["acknowledgements"] == "ok")
    finally:
        write(engine, "ALTER TABLE proxies DROP CONSTRAINT no_poison")


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
