"""A caller by HTTP/3: an Envoy of the tests' own that passes requests in HTTP/1.1 on by QUIC."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stack.parts.envoy import envoy_program
from tests.support.certificates.authorities import Authority
from tests.support.stack.ports import free_port
from tests.support.stack.server_process import Process

_TYPES = "type.googleapis.com/envoy.extensions"


@contextmanager
def calling_by_http3(door: int, host: str, authority: Authority, folder: Path) -> Iterator[str]:
    """Yield its address. It asks at this port of 127.0.0.1 for the host, and trusts only this authority."""
    port, admin = free_port(), free_port()
    (folder / "ca.pem").write_text(authority.pem)
    config = folder / "caller.json"
    config.write_text(json.dumps(_config(port, admin, door, host, folder / "ca.pem")))
    command = [str(envoy_program()), "--config-path", str(config), "--disable-hot-restart", "--concurrency", "1"]
    caller = Process(command, port, folder / "caller.log", f"http://127.0.0.1:{admin}/ready")
    caller.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        caller.end()


def _config(port: int, admin: int, door: int, host: str, trusted: Path) -> dict[str, object]:
    routes = [{"match": {"prefix": "/"}, "route": {"cluster": "by-http3", "host_rewrite_literal": host}}]
    requests = {
        "@type": f"{_TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "caller",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}]},
        "http_filters": [
            {
                "name": "envoy.filters.http.router",
                "typed_config": {"@type": f"{_TYPES}.filters.http.router.v3.Router"},
            }
        ],
    }
    believes = {"validation_context": {"trusted_ca": {"filename": str(trusted)}}}
    quic = {
        "@type": f"{_TYPES}.transport_sockets.quic.v3.QuicUpstreamTransport",
        "upstream_tls_context": {"sni": host, "common_tls_context": believes},
    }
    options = {
        "@type": f"{_TYPES}.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http3_protocol_options": {}},
    }
    cluster = {
        "name": "by-http3",
        "type": "STATIC",
        "load_assignment": {
            "cluster_name": "by-http3",
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": _at(door)}}]}],
        },
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
        "transport_socket": {"name": "envoy.transport_sockets.quic", "typed_config": quic},
    }
    filters = [{"name": "envoy.filters.network.http_connection_manager", "typed_config": requests}]
    listener = {"name": "caller", "address": _at(port), "filter_chains": [{"filters": filters}]}
    return {
        "admin": {"address": _at(admin)},
        "static_resources": {"listeners": [listener], "clusters": [cluster]},
    }


def _at(port: int) -> dict[str, object]:
    return {"socket_address": {"address": "127.0.0.1", "port_value": port}}
