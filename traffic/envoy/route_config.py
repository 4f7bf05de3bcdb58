"""Envoy's route configuration: which request belongs to which deployment, and what Envoy answers itself."""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import chain
from typing import Any

from domain.traffic.entrances import PAGE_HOST
from domain.traffic.maintenance import MOST_PAGE_BYTES, Maintenance
from traffic.envoy.clusters import led_to, shares_of
from traffic.envoy.envoy_names import PREVIEW_HEADER, ROUTE_CONFIGURATION, as_in_a_file, preview_cluster
from traffic.envoy.listeners import secured_hosts
from traffic.envoy.replica_routes import to_replicas
from traffic.envoy.retries import routed
from traffic.resources import Resource, listing, resource
from traffic.routing_table import Prefix, Service, TlsDoor, TrafficTable

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


_COUNTS_TRIES = {"include_request_attempt_count": True}
"""The bootstrap counts a request as begun with the first try, which this header tells from the others."""
_WANTS_PREVIEW = [
    {"name": PREVIEW_HEADER, "present_match": True},
    {"name": PREVIEW_HEADER, "string_match": {"exact": "false", "ignore_case": True}, "invert_match": True},
]


def route_configuration(table: TrafficTable, before: Resource | None = None, changes: Collection[str] = ()) -> Resource:
    """A virtual host for the host names of each deployment, and another for all path prefixes, the longest first.

    `before`: an older one, of which everything is kept but the routes to deployments that have `changes`.
    """
    old = before.entries if before else {}
    old_prefixes = old[_BY_PREFIX][0].entries if before else {}
    hosts = {
        service.name: tuple(resource(host) for host in _virtual_hosts(service, table.door))
        if before is None or service.name in changes
        else old[service.name]
        for service in table.services
    }
    prefixes = [(prefix, service) for service in table.services for prefix in service.prefixes]
    prefixes.sort(key=lambda pair: (-len(pair[0].value), pair[0].value))
    by_prefix = {
        prefix.value: tuple(resource(route) for route in _by_prefix(prefix, service))
        if before is None or service.name in changes
        else old_prefixes[prefix.value]
        for prefix, service in prefixes
    }
    by_prefix = {",": _OF_TWO_HOSTS, **by_prefix}
    by_prefix[""] = (resource(answer({"prefix": "/"}, 404, _NOBODY)),)
    hosts[_PAGE] = (resource(_OF_THE_PAGE),)
    hosts[_BY_PREFIX] = (listing({"name": "by-prefix", "domains": [_BY_PREFIX], **_COUNTS_TRIES}, "routes", by_prefix),)
    head = {"name": ROUTE_CONFIGURATION, "ignore_port_in_host_matching": True, **MOST_BODY}
    return listing(head, "virtual_hosts", hosts)


_BY_PREFIX = "*"
_TWO_HOSTS = {"prefix": "/", "headers": [{"name": ":authority", "string_match": {"contains": ","}}]}
_OF_TWO_HOSTS = (resource(answer(_TWO_HOSTS, 400, "Rollway: a request names one host.\n")),)
"""Envoy puts two Host lines into one, with a comma between them."""
_NOBODY = "Rollway: no deployment is reached by this host name or path. 'rollway status' lists those that exist.\n"


_PAGE = "/page"
"""The page's key among the virtual hosts. No deployment's name has a slash."""


def _virtual_hosts(service: Service, door: TlsDoor | None) -> Iterator[dict[str, Any]]:
    everything: dict[str, Any] = {"prefix": "/"}
    tls_hosts = secured_hosts(service)
    in_clear = tuple(host for host in service.hosts if host not in tls_hosts)
    for name, hosts in ((service.name, tls_hosts), (_in_clear(service.name) if tls_hosts else service.name, in_clear)):
        if hosts:
            first = before_all(service, door, is_secure=hosts == tls_hosts)
            yield {
                "name": name,
                "domains": list(hosts),
                **_COUNTS_TRIES,
                **(told_browsers(service, door) if hosts == tls_hosts else {}),
                **limited(service.rules.max_requests_per_second),
                **_TOLD_NOTHING,
                "routes": [
                    *first,
                    *_preview(service, _wanting_preview(everything), {}),
                    *_live(service, everything, {}),
                ],
            }
    if service.preview_hosts:
        first = before_all(service, door, is_secure=tls_hosts == service.hosts)
        yield {
            "name": preview_cluster(service.name),
            "domains": list(service.preview_hosts),
            **_TOLD_NOTHING,
            "routes": [*(first if service.asks_callers else ()), *_preview(service, everything, {})],
        }


def _in_clear(service: str) -> str:
    """The name of a virtual host for host names that have no certificate, where others of the same deployment have."""
    return f"{service}/in-clear"


def _by_prefix(prefix: Prefix, service: Service) -> Iterator[dict[str, Any]]:
    """Match both "/web" and "/web/..."; with `strip` the replica sees "/..."."""
    bare = prefix.value.rstrip("/")
    match: dict[str, Any] = {"path_separated_prefix": bare} if bare else {"prefix": "/"}
    rewrite: dict[str, Any] = {}
    if bare and prefix.strip:
        rewrite = {"regex_rewrite": {"pattern": {"regex": f"^{re.escape(bare)}/?"}, "substitution": "/"}}
    prefix_header = _told_prefix(bare) if rewrite else _TOLD_NOTHING
    for route in chain(_preview(service, _wanting_preview(match), rewrite), _live(service, match, rewrite)):
        yield {**route, **prefix_header} if "route" in route else route


_FORWARDED_PREFIX = "x-forwarded-prefix"
_TOLD_NOTHING = {"request_headers_to_remove": [_FORWARDED_PREFIX]}
"""No caller is believed about it: a service makes links of it."""


def _told_prefix(prefix: str) -> dict[str, Any]:
    """The part of its path that a replica does not see, for links in its answers. A % alone is special to Envoy."""
    header = {"key": _FORWARDED_PREFIX, "value": prefix.replace("%", "%%")}
    return {"request_headers_to_add": [{"header": header, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}]}


def _wanting_preview(match: dict[str, Any]) -> dict[str, Any]:
    return {**match, "headers": _WANTS_PREVIEW}


def _live(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Routes to the replicas; in maintenance only for callers who get through, and everybody else is answered here."""
    if service.maintenance is None:
        return _within_size(service, match, rewrite)
    through = who_gets_through(service.maintenance, match)
    among = _within_size(service, through, rewrite) if service.maintenance.allow else ()
    return chain(among, in_maintenance(service.name, service.maintenance, match))


def _within_size(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What says that it is too large is refused at once, and what says nothing is read whole first."""
    most = service.rules.max_body_bytes
    if most is not None:
        yield too_large(service.name, most, match)
        for route in to_replicas(service, of_unsaid_size(match), rewrite):
            yield {**route, "typed_per_filter_config": read_whole(most)}
    yield from to_replicas(service, match, rewrite)


def _preview(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Routes to the coming revision, or a refusal: the live one never answers a request for a preview."""
    if service.preview:
        where = led_to(shares_of(service, preview_cluster(service.name)))
        yield from routed(where, service, match, rewrite)
    else:
        yield answer(match, 503, f"Rollway: {service.name} has no revision to preview at the moment.\n")


_NOT_HERE = f"Rollway: {PAGE_HOST} is the page's alone, at the port of the server for people.\n"
_OF_THE_PAGE = {
    "name": "page",
    "domains": [PAGE_HOST, f"*.{PAGE_HOST}", f"{PAGE_HOST}.", f"*.{PAGE_HOST}."],
    "routes": [answer({"prefix": "/"}, 421, _NOT_HERE)],
}
"""A script of a service that answered by one of these names could set cookies that the page is shown."""
