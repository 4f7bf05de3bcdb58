"""Replicas that speak HTTP/2 alone, as gRPC servers do."""

from tests.support.proxies import plain_http
from tests.support.proxies.edge import Edge
from tests.support.proxies.http2_replica import http2_replica
from tests.support.rows.deployments import write
from tests.support.stack.waiting import eventually


def failed(edge: Edge, cluster: str) -> int:
    """How many answers of this cluster Envoy has counted as failed."""
    stats = plain_http.get(f"{edge.envoy.ready.rpartition('/')[0]}/stats", params={"filter": "^rollway.failed"}).text
    return sum(int(line.rpartition(":")[2]) for line in stats.splitlines() if f".{cluster}." in line)


def test_a_replica_that_speaks_http2_alone_is_reached_and_what_grpc_calls_a_failure_is_counted(
    envoy_edge: Edge,
) -> None:
    with http2_replica() as replica:
        web = envoy_edge.make("■", replica)
        eventually(lambda: envoy_edge.ask(f"/{web.name}/").status_code in {502, 503}, what="HTTP/1.1 is refused")
        write(envoy_edge.routes.engine, "UPDATE deployments SET protocol = 'http2' WHERE id = %s", web.id)
        envoy_edge.routes.tell()
        eventually(lambda: envoy_edge.ask(f"/{web.name}/").status_code == 200, what="it is asked in HTTP/2")
        before = failed(envoy_edge, f"{web.name}/http2")
        answers = [envoy_edge.ask(f"/{web.name}/", "POST", **{"content-type": "application/grpc"}) for _ in range(3)]
        assert {(answer.status_code, answer.headers["x-spoken"]) for answer in answers} == {(200, "HTTP/2")}
        eventually(lambda: failed(envoy_edge, f"{web.name}/http2") == before + 3, what="they are counted as failed")
