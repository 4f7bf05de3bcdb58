"""An Envoy that is frozen with its stream open: it counts for no longer than is promised, and is back by itself."""

from db.connection.transactions import in_transaction
from db.proxies.acks import list_proxies
from tests.support.proxies.edge import Edge
from tests.support.stack.waiting import eventually


def is_live(edge: Edge) -> bool:
    return any(proxy.is_live for proxy in in_transaction(edge.routes.engine, list_proxies))


def test_a_frozen_envoy_counts_for_half_a_minute_and_is_back_by_itself(envoy_edge: Edge) -> None:
    eventually(lambda: is_live(envoy_edge))
    envoy_edge.envoy.freeze()
    try:
        eventually(lambda: not is_live(envoy_edge), within=45)  # 20 s until its stream is ended, and 10 s of silence
    finally:
        envoy_edge.envoy.thaw()
    eventually(lambda: is_live(envoy_edge))
