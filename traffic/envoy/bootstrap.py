"""The bootstrap of an Envoy that serves Rollway's deployments: bootstrap.yaml, which has its reasons, filled in."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import yaml

from domain.model.answer_counts import FIRST_BYTE_MS
from domain.traffic.entrances import SESSION_COOKIE
from domain.traffic.nodes import token_of
from domain.traffic.wire import MOST_HEADER_KIB, MOST_HEADER_LINES
from traffic.edge_settings import NOTHING_IN_FRONT, InFront
from traffic.envoy import retries
from traffic.envoy.clusters import XDS_CLUSTER
from traffic.envoy.envoy_names import PAGES, ROUTE_CONFIGURATION, page_key
from traffic.envoy.stats import LONGEST_MS

_HTML = "text/html; charset=utf-8"
_IF = "type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter"
_NO_GRPC = {
    "name": "content-type",
    "string_match": {"prefix": "application/grpc"},
    "invert_match": True,
    "treat_missing_header_as_empty": True,
}
_NOT_WEBSOCKET = "(?i)" + "|".join(f"{'websocket'[:place]}([^{letter}].*)?" for place, letter in enumerate("websocket"))
"""All other values of Upgrade: RE2 cannot negate."""
_OWN = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104


def envoy_bootstrap(  # noqa: PLR0913 -- all that one proxy differs from another in
    *,
    node_id: str,
    key: str | None,
    listen: tuple[str, int],
    admin: tuple[str, int] | Path,
    xds: tuple[str, int] | Path,
    stats: tuple[str, int],
    admin_paths: Sequence[str] = (),
    in_front: InFront = NOTHING_IN_FRONT,
) -> str:
    """The YAML for `envoy --config-path`. Addresses are (IP address or, for `xds`, host name; port), or a Unix socket.

    `node_id` names this proxy: two proxies with one id could not be told apart, and a drain might miss one of them.
    `stats`: where the server for proxies reads what this proxy has counted; it knows the host from the proxy's stream.
    `key`: of the installation, which the proxy's token is made from; None where the server asks for none.
    `admin`: where its own pages are; a path: a Unix socket, relative to where it runs, for its own user alone.
    `in_front`: what is in front of this proxy.
    `admin_paths`: what the paths of its own pages must begin with; with none given, all of them are open.
    """
    template = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
    return Template(template).substitute(
        node_id=json.dumps(node_id),
        metadata=json.dumps(_metadata(node_id, key, stats[1])),
        listen=json.dumps(for_callers(*listen)),
        admin=json.dumps(_at(admin) if isinstance(admin, Path) else _at(*admin)),
        own_admin=json.dumps(_at(admin) if isinstance(admin, Path) else _at(_OWN.get(admin[0], admin[0]), admin[1])),
        admin_paths=json.dumps([{"prefix": path} for path in admin_paths]),
        trusted_hops=in_front.trusted_hops,
        listener_filters=json.dumps(listener_filters(in_front)),
        stats_host=json.dumps(stats[0]),
        stats_port=stats[1],
        first_byte_ms=json.dumps([*FIRST_BYTE_MS, LONGEST_MS]),
        xds=json.dumps({"pipe": {"path": str(xds)}} if isinstance(xds, Path) else _at(*xds)),
        xds_type="STATIC" if isinstance(xds, Path) else "STRICT_DNS",
        xds_cluster=XDS_CLUSTER,
        route_configuration=ROUTE_CONFIGURATION,
        held_listener=retries.HELD_LISTENER,
        held_header=retries.HELD_HEADER,
        held_page=page_key("503"),
        html=_HTML,
        held_round=f"{retries.HELD_ROUND_SECONDS:g}s",
        session_cookie=SESSION_COOKIE.removeprefix("__Host-"),
        failure_pages=json.dumps([_page_for(status) for status in (502, 503, 504)]),
        not_websocket=json.dumps(_NOT_WEBSOCKET),
        most_header_lines=MOST_HEADER_LINES,
        most_header_kib=MOST_HEADER_KIB,
        types="type.googleapis.com/envoy.extensions",
    )


def _metadata(node_id: str, key: str | None, stats_port: int) -> dict[str, object]:
    """What this Envoy tells the server for proxies about itself."""
    return {"rollway_stats_port": stats_port} | ({"rollway_token": token_of(node_id, key)} if key else {})


def listener_filters(in_front: InFront) -> list[dict[str, Any]]:
    """The filters that read a connection before all else."""
    kind = "type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol"
    reads = {"name": "envoy.filters.listener.proxy_protocol", "typed_config": {"@type": kind}}
    return [reads] if in_front.proxy_protocol else []


@cache
def filter_of_requests(trusted_hops: int = 0) -> Mapping[str, Any]:
    """The network filter of requests in the bootstrap, which every listener has."""
    at, front = ("127.0.0.1", 1), InFront(trusted_hops=trusted_hops)
    text = envoy_bootstrap(node_id="", key=None, listen=at, admin=at, xds=at, stats=at, in_front=front)
    listeners = yaml.safe_load(text)["static_resources"]["listeners"]
    (chain,) = next(listener for listener in listeners if listener["name"] == ROUTE_CONFIGURATION)["filter_chains"]
    (http_filter,) = chain["filters"]
    assert isinstance(http_filter, dict)  # noqa: S101  (narrows the type)
    return http_filter


def _page_for(status: int) -> dict[str, Any]:
    """Use the page of the route, where it has one, for Envoy's own answers; gRPC gets none."""
    key = page_key(str(status))
    has_one = {"@type": _IF, "expression": f"'{key}' in xds.route_metadata.filter_metadata['{PAGES}']"}
    filters = [
        {"status_code_filter": {"comparison": {"value": {"default_value": status, "runtime_key": "rollway.none"}}}},
        {"header_filter": {"header": _NO_GRPC}},
        {"extension_filter": {"name": "envoy.access_loggers.extension_filters.cel", "typed_config": has_one}},
    ]
    page = {"text_format_source": {"inline_string": f"%METADATA(ROUTE:{PAGES}:{key})%"}, "content_type": _HTML}
    return {"filter": {"and_filter": {"filters": filters}}, "body_format_override": page}


def for_callers(host: str, port: int, **more: str) -> dict[str, Any]:
    """The address of a listener for callers, as Envoy writes it: :: also takes callers by IPv4."""
    both = {"ipv4_compat": True} if host == "::" else {}
    return {"socket_address": {"address": host, "port_value": port, **both, **more}}


def _at(host: str | Path, port: int = 0) -> dict[str, object]:
    """The address as Envoy writes it."""
    if isinstance(host, Path):
        return {"pipe": {"path": str(host), "mode": 0o600}}
    return {"socket_address": {"address": host, "port_value": port}}
