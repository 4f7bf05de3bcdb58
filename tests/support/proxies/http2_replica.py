"""A replica that speaks HTTP/2 alone, as gRPC servers do: another Envoy is one, and refuses HTTP/1.1."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from stack.parts.envoy import envoy_program
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process

_TYPES = "type.googleapis.com/envoy.extensions.filters"
_UNAVAILABLE = {"content-type": "application/grpc", "grpc-status": "14", "x-spoken": "%PROTOCOL%"}


def _address(port: int) -> dict[str, object]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}


def _speaks_http2(port: int, admin: int) -> str:
    """A server whose every answer is gRPC's UNAVAILABLE, and says what it was asked in; that of /broken is a 503."""
    action = "OVERWRITE_IF_EXISTS_OR_ADD"
    headers = [
        {"header": {"key": name, "value": value}, "append_action": action} for name, value in _UNAVAILABLE.items()
    ]
    answer = {"match": {"prefix": "/"}, "direct_response": {"status": 200}, "response_headers_to_add": headers}
    broken = {"match": {"path": "/broken"}, "direct_response": {"status": 503}}
    router = {"name": "envoy.filters.http.router", "typed_config": {"@type": f"{_TYPES}.http.router.v3.Router"}}
    connections = {
        "@type": f"{_TYPES}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "replica",
        "codec_type": "HTTP2",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [broken, answer]}]},
        "http_filters": [router],
    }
    chain = {"filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": connections}]}
    listeners = [{"address": _address(port), "filter_chains": [chain]}]
    return yaml.safe_dump({"admin": {"address": _address(admin)}, "static_resources": {"listeners": listeners}})


@contextmanager
def http2_replica(folder: Path) -> Iterator[str]:
    """Its address."""
    port, admin = free_port(), free_port()
    config = folder / "replica.yaml"
    config.write_text(_speaks_http2(port, admin))
    options = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "warn"]
    command = [str(envoy_program()), "--config-path", str(config), *options]
    replica = Process(command, port, folder / "replica.log", f"http://127.0.0.1:{admin}/ready")
    try:
        replica.start()
        yield f"127.0.0.1:{port}"
    finally:
        if replica.process is not None:
            replica.end(kill=True)
