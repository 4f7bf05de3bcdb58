"""Replicas that speak HTTP/2 alone, as gRPC servers do: another Envoy is one, and refuses HTTP/1.1."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from stack.parts.envoy import envoy_program
from stack.ports import free_port
from tests.support import plain_http
from tests.support.deployments import write
from tests.support.edge import Edge
from tests.support.server_process import Process
from tests.support.waiting import eventually

_TYPES = "type.googleapis.com/envoy.extensions.filters"
_UNAVAILABLE = {"content-type": "application/grpc", "grpc-status": "14", "x-spoken": "%PROTOCOL%"}


def _address(port: int) -> dict[str, object]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _speaks_http2(port: int, admin: int) -> str:
    """A server whose every answer is gRPC's UNAVAILABLE, and says what it was asked in."""
    action = "OVERWRITE_IF_EXISTS_OR_ADD"
    headers = [
        {"header": {"key": name, "value": value}, "append_action": action} for name, value in _UNAVAILABLE.items()
    ]
    answer = {"match": {"prefix": "/"}, "direct_response": {"status": 200}, "response_headers_to_add": headers}
    router = {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{_TYPES}.http.router.v3.Router"}}
    manager = {
        "@type": f"{_TYPES}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "replica",
        "codec_type": "HTTP2",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [answer]}]},
        "http_filters": [router],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}]}
    listeners = [{"address": _address(port), "filter_chains": [chain]}]
    return yaml.safe_dump({"admin": {"address": _address(admin)}, "static_resources": {"listeners": listeners}})


@pytest.fixture
def http2_replica(tmp_path: Path) -> Iterator[str]:
    port, admin = free_port(), free_port()
    config = tmp_path / "replica.yaml"
    config.write_text(_speaks_http2(port, admin))
    options = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"]
    command = [str(envoy_program()), "--config-path", str(config), *options]
    replica = Process(command, port, tmp_path / "replica.log", f"http://127.0.0.1:{admin}/ready")
    replica.start()
    yield f"127.0.0.1:{port}"
    replica.end(kill=True)


def failed(edge: Edge, cluster: str) -> int:
    """How many answers of this cluster Envoy has counted as failed."""
    stats = plain_http.get(f"{edge.envoy.ready.rpartition('/')[0]}/stats", params={"filter": "^rollway.failed"}).text
    return sum(int(line.rpartition(":")[2]) for line in stats.splitlines() if f".{cluster}." in line)


def test_a_replica_that_speaks_http2_alone_is_reached_and_what_grpc_calls_a_failure_is_counted(
    edge: Edge, http2_replica: str
) -> None:
    web = edge.make("■", http2_replica)
    eventually(lambda: edge.ask(f"/{web.name}/").status_code in {502, 503}, what="HTTP/1.1 is refused")
    write(edge.routes.engine, "UPDATE deployments SET protocol = 'http2' WHERE id = %s", web.id)
    edge.routes.tell()
    eventually(lambda: edge.ask(f"/{web.name}/").status_code == 200, what="it is asked in HTTP/2")
    before = failed(edge, web.name)
    answers = [edge.ask(f"/{web.name}/", "POST", **{"content-type": "application/grpc"}) for _ in range(3)]
    assert {(answer.status_code, answer.headers["x-spoken"]) for answer in answers} == {(200, "HTTP/2")}
    eventually(lambda: failed(edge, web.name) == before + 3, what="they are counted as failed")
