"""Envoy's own answers: to challenges, to plain HTTP, in maintenance, and to requests that are too large."""

from collections.abc import Iterator, Mapping
from typing import Any

from domain.traffic.maintenance import MOST_PAGE_BYTES, Maintenance
from traffic.envoy.envoy_names import as_in_a_file
from traffic.routing_table import Service, TlsDoor

MOST_BODY = {"max_direct_response_body_size_bytes": MOST_PAGE_BYTES}
"""The limit in the route configuration: the largest page of a deployment's own."""


CHALLENGES = "/.well-known/acme-challenge/"
"""RFC 8555, 8.3: the path where an authority looks for the answer to a challenge."""
_HTTPS_PORT = 443
_HTTP3_KNOWN_SECONDS = 86_400
"""The time for which a browser may use HTTP/3 before it is told again."""
_IN_CLEAR = [{"name": "x-forwarded-proto", "string_match": {"exact": "http"}}]
"""The proxy sets this itself, whatever a client sent."""


def answer(match: dict[str, Any], status: int, sentence: str) -> dict[str, Any]:
    """Answer the matching requests; no cluster is involved."""
    return {"match": match, "direct_response": {"status": status, "body": {"inline_string": sentence}}}


def before_all(service: Service, door: TlsDoor | None, *, is_secure: bool) -> Iterator[dict[str, Any]]:
    """Routes that come before all others by the same host names; `is_secure`: these have a certificate.

    Then plain HTTP is redirected. Where callers must show a certificate, plain HTTP gets nothing, whether there is a
    certificate or not.
    """
    tls = service.rules.tls
    if tls is None:
        return
    for challenge in service.secured.challenges if service.secured else ():
        yield answer({"path": f"{CHALLENGES}{challenge.token}"}, 200, challenge.answer)
    in_clear = {"prefix": "/", "headers": _IN_CLEAR}
    if door is not None and (tls.redirect or service.asks_callers) and is_secure:
        yield {"match": in_clear, "redirect": _to_tls(door)}
    elif service.asks_callers:
        sentence = f"Rollway: {service.name} is reached by TLS alone, with a certificate of the caller's own.\n"
        yield answer(in_clear, 403, sentence)


def told_browsers(service: Service, door: TlsDoor | None) -> dict[str, Any]:
    """The headers of a virtual host with certificates: use TLS alone (RFC 6797), and HTTP/3."""
    tls = service.rules.tls
    if door is None or tls is None:
        return {}
    headers = {}
    if tls.hsts_seconds is not None:
        headers["strict-transport-security"] = f"max-age={tls.hsts_seconds}"
    if tls.http3:
        headers["alt-svc"] = f'h3=":{door.public_port}"; ma={_HTTP3_KNOWN_SECONDS}'
    return {"response_headers_to_add": _set(headers)} if headers else {}


def _set(headers: Mapping[str, str]) -> list[dict[str, Any]]:
    """Set these headers of an answer over those of a replica."""
    return [
        {"header": {"key": key, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}
        for key, value in headers.items()
    ]


def _to_tls(door: TlsDoor) -> dict[str, Any]:
    """308 keeps the method and the body, so that a POST is not made a GET."""
    port = {} if door.public_port == _HTTPS_PORT else {"port_redirect": door.public_port}
    return {"https_redirect": True, **port, "response_code": "PERMANENT_REDIRECT"}


def who_gets_through(maintenance: Maintenance, match: dict[str, Any]) -> dict[str, Any]:
    """The match of requests with the header that lets them through a maintenance."""
    name, value = maintenance.allowed
    condition = {"string_match": {"exact": value}} if value else {"present_match": True}
    return {**match, "headers": [*match.get("headers", []), {"name": name, **condition}]}


def in_maintenance(name: str, maintenance: Maintenance, match: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Answer matching requests by 503 from the proxy itself, which counts for no revision."""
    sentence = f"Rollway: {name} is in maintenance; try again later.\n"
    headers = {"retry-after": str(maintenance.retry_after_seconds), "cache-control": "no-store"}
    if maintenance.page:
        headers["content-type"] = "text/html; charset=utf-8"
    yield {**answer(match, 503, maintenance.page or sentence), "response_headers_to_add": _set(headers)}


def too_large(name: str, most: int, match: dict[str, Any]) -> dict[str, Any]:
    """Answer 413 to matching requests whose declared body is larger than that."""
    header = {"name": _LENGTH, "range_match": {"start": most + 1, "end": _LARGEST_NUMBER}}
    sentence = f"Rollway: a request to {name} may have a body of {most} bytes.\n"
    return answer({**match, "headers": [*match.get("headers", []), header]}, 413, sentence)


def of_unsaid_size(match: dict[str, Any]) -> dict[str, Any]:
    """The match of requests that do not declare the size of their body; a websocket has none."""
    unsaid = [{"name": name, "present_match": True, "invert_match": True} for name in (_LENGTH, "upgrade")]
    return {**match, "headers": [*match.get("headers", []), *unsaid]}


def read_whole(most: int) -> dict[str, Any]:
    """Read requests of a route to their end, or until they are too large, before a replica gets them."""
    buffer = {"buffer": {"max_request_bytes": most}}
    return {"envoy.filters.http.buffer": as_in_a_file(_BUFFER, buffer)}


def limited(each_second: int | None) -> dict[str, Any]:
    """The rate limit of a virtual host: further requests in a second get 429."""
    if each_second is None:
        return {}
    always = {"default_value": {"numerator": 100}}
    config = {
        "stat_prefix": "rollway_limited",
        "token_bucket": {"max_tokens": each_second, "tokens_per_fill": each_second, "fill_interval": "1s"},
        "filter_enabled": always,
        "filter_enforced": always,
        "response_headers_to_add": [{"header": {"key": "retry-after", "value": "1"}}],
        "rate_limited_as_resource_exhausted": True,
    }
    return {"typed_per_filter_config": {"envoy.filters.http.local_ratelimit": as_in_a_file(_LIMIT, config)}}


_LENGTH = "content-length"
_LARGEST_NUMBER = 2**63 - 1
_BUFFER = "type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute"
_LIMIT = "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit"
