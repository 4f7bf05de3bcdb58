"""Bodies that are too large are refused by a real Envoy, whether they say how large they are or not."""

import socket
from collections.abc import Iterator

import pytest
from psycopg.types.json import Jsonb

from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.web_replicas import Replica, replicas
from tests.support.rows.deployments import Made, write
from tests.support.stack.waiting import eventually

MOST = 2_000_000


def parts(size: int) -> Iterator[bytes]:
    for _ in range(size // 50_000):
        yield bytes(50_000)


@pytest.fixture
def replica() -> Iterator[Replica]:
    with replicas("here") as (here,):
        yield here


@pytest.fixture
def web(envoy_edge: Edge, replica: Replica) -> Made:
    made = envoy_edge.make("■", replica)
    write(
        envoy_edge.routes.engine,
        "UPDATE deployments SET rules = %s WHERE id = %s",
        Jsonb({"max_body_bytes": MOST}),
        made.id,
    )
    envoy_edge.routes.tell()
    envoy_edge.wait_for(f"/{made.name}/")
    eventually(lambda: sent(envoy_edge, made, bytes(MOST + 1)) == 413, what="a larger body is refused")
    replica.served.clear()
    return made


def sent(edge: Edge, made: Made, content: bytes | Iterator[bytes]) -> int:
    return plain_http.post(f"{edge.envoy.url}/{made.name}/", content=content, timeout=20).status_code


def test_a_body_may_be_as_large_as_was_said_and_no_larger(envoy_edge: Edge, replica: Replica, web: Made) -> None:
    assert sent(envoy_edge, web, bytes(MOST)) == 200
    assert sent(envoy_edge, web, bytes(MOST + 1)) == 413
    assert replica.served == {"POST": 1}
    other = envoy_edge.make("■", replica)
    envoy_edge.wait_for(f"/{other.name}/")
    assert sent(envoy_edge, other, bytes(MOST + 1)) == 200, "it is a rule of one deployment"


def test_a_body_that_does_not_say_its_length_is_read_first(envoy_edge: Edge, replica: Replica, web: Made) -> None:
    assert sent(envoy_edge, web, parts(MOST + 50_000)) == 413
    assert not replica.served, "no replica sees a beginning"
    assert sent(envoy_edge, web, parts(MOST)) == 200


def test_a_websocket_is_not_waited_for(envoy_edge: Edge, replica: Replica, web: Made) -> None:
    asked = f"GET /{web.name}/ HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with socket.create_connection(("127.0.0.1", envoy_edge.envoy.port), timeout=10) as client:
        client.sendall(asked.encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 200"), "as this replica answers, which speaks no websocket"
    assert replica.served == {"GET": 1}
