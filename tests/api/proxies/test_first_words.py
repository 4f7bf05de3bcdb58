"""What a proxy says of itself with its first word on a stream, played by hand."""

import math

import grpc
import pytest

from api.proxies.envoy.discovery import stats_address
from tests.support.proxies.edge import EdgeRoutes
from tests.support.proxies.streaming import Node
from tests.support.rows.deployments import Made, read
from tests.support.stack.server_process import Process
from tests.support.stack.waiting import eventually
from traffic.resources import ResourceKind

CLUSTERS, ENDPOINTS, *_ = ResourceKind


@pytest.mark.parametrize("node_id", ["", "a b", "x" * 201, "ü", "x\0y"])
def test_who_has_no_name_is_refused_with_a_sentence(node: Node, node_id: str) -> None:
    node.id = node_id
    node.token = ""
    node.ask(CLUSTERS)
    with pytest.raises(grpc.RpcError) as refused:
        node.hear()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert str(refused.value.details()).startswith("node.id must be 1 to 200 printable ASCII characters")


@pytest.mark.parametrize(
    ("peer", "address"),
    [("ipv4:10.0.0.7:50321", "10.0.0.7:9902"), ("ipv6:%5B2001:db8::7%5D:50321", "[2001:db8::7]:9902")],
)
def test_a_proxy_tells_what_it_has_counted_on_the_host_that_its_stream_comes_from(peer: str, address: str) -> None:
    assert stats_address(peer, 9902) == address


def test_where_a_proxy_tells_what_it_has_counted_is_noted(
    shared_server: tuple[EdgeRoutes, Process], web: Made, node: Node
) -> None:
    def noted() -> str | None:
        rows = read(shared_server[0].engine, "SELECT stats_address FROM proxies WHERE node_id = %s", node.id)
        return rows[0]["stats_address"] if rows else "no proxy"

    node.stats_port = 9902
    node.ask(ENDPOINTS, web.name)
    node.accept(node.hear())
    eventually(lambda: noted() == "127.0.0.1:9902")
    node.open()
    node.stats_port = None
    node.ask(ENDPOINTS, web.name)
    eventually(lambda: noted() is None)


@pytest.mark.parametrize("port", [0, 65_536, 1.5, -1, math.nan, math.inf])
def test_a_port_that_cannot_be_is_refused_with_a_sentence(node: Node, port: float) -> None:
    node.stats_port = port
    node.ask(CLUSTERS)
    with pytest.raises(grpc.RpcError) as refused:
        node.hear()
    assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert str(refused.value.details()).startswith("node.metadata.rollway_stats_port must be a whole number")
