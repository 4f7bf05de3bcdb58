"""Envoy's route configuration: which request belongs to which deployment, when it is tried again, what is refused."""

import re
from collections.abc import Collection, Iterator
from typing import Any

from domain.installation.tokens import PAGE_HOST
from domain.words.numbers import WHOLE
from traffic.envoy.names import (
    COOKIE_SECONDS,
    PREVIEW_HEADER,
    ROUTE_CONFIGURATION,
    baseline_cluster,
    canary_cluster,
    cookie_of,
    mirror_cluster,
    preview_cluster,
)
from traffic.envoy.retries import routed
from traffic.resources import Resource, listing, resource
from traffic.table import Service, TrafficTable
from traffic.ways import Prefix

_COUNTS_TRIES = {"include_request_attempt_count": True}
"""The bootstrap counts a request as begun with the first try, which this header tells from the others."""
_REQUEST_ID = "x-request-id"
"""Envoy gives each request one, a random UUID, whatever a client sent."""
_WANTS_PREVIEW = [
    {"name": PREVIEW_HEADER, "present_match": True},
    {"name": PREVIEW_HEADER, "string_match": {"exact": "false", "ignore_case": True}, "invert_match": True},
]
_ONLY_READS = [
    {"name": ":method", "string_match": {"safe_regex": {"regex": "GET|HEAD|OPTIONS"}}},
    {"name": "upgrade", "present_match": True, "invert_match": True},
    {
        "name": "accept",
        "string_match": {"contains": "text/event-stream"},
        "invert_match": True,
        "treat_missing_header_as_empty": True,
    },
]


def route_configuration(table: TrafficTable, before: Resource | None = None, changed: Collection[str] = ()) -> Resource:
    """A virtual host for the host names of each deployment, and another for all path prefixes, the longest first.

    `before`: an older one, of which everything is kept but the routes to deployments that have `changed`.
    """
    old = before.entries if before else {}
    old_prefixes = old[_BY_PREFIX][0].entries if before else {}
    hosts = {
        service.name: tuple(resource(host) for host in _virtual_hosts(service))
        if before is None or service.name in changed
        else old[service.name]
        for service in table.services
    }
    prefixes = [(prefix, service) for service in table.services for prefix in service.prefixes]
    prefixes.sort(key=lambda pair: (-len(pair[0].value), pair[0].value))
    by_prefix = {
        prefix.value: tuple(resource(route) for route in _by_prefix(prefix, service))
        if before is None or service.name in changed
        else old_prefixes[prefix.value]
        for prefix, service in prefixes
    }
    by_prefix[""] = (resource(_refusal({"prefix": "/"}, 404, _NOBODY)),)
    hosts[_PAGE] = (resource(_OF_THE_PAGE),)
    hosts[_BY_PREFIX] = (listing({"name": "by-prefix", "domains": [_BY_PREFIX], **_COUNTS_TRIES}, "routes", by_prefix),)
    return listing({"name": ROUTE_CONFIGURATION, "ignore_port_in_host_matching": True}, "virtual_hosts", hosts)


_BY_PREFIX = "*"
_NOBODY = "Rollway: no deployment is reached by this host name or path. 'rollway status' lists those that exist.\n"


_PAGE = "/page"
"""The page's key among the virtual hosts. No deployment's name has a slash."""


def _virtual_hosts(service: Service) -> Iterator[dict[str, Any]]:
    everything: dict[str, Any] = {"prefix": "/"}
    if service.hosts:
        yield {
            "name": service.name,
            "domains": list(service.hosts),
            **_COUNTS_TRIES,
            "routes": [*_preview(service, _wanting_preview(everything), {}), *_live(service, everything, {})],
        }
    if service.preview_hosts:
        yield {
            "name": preview_cluster(service.name),
            "domains": list(service.preview_hosts),
            "routes": list(_preview(service, everything, {})),
        }


def _by_prefix(prefix: Prefix, service: Service) -> Iterator[dict[str, Any]]:
    """Match both "/web" and "/web/..."; with `strip` the replica sees "/..."."""
    bare = prefix.value.rstrip("/")
    match: dict[str, Any] = {"path_separated_prefix": bare} if bare else {"prefix": "/"}
    rewrite: dict[str, Any] = {}
    if bare and prefix.strip:
        rewrite = {"regex_rewrite": {"pattern": {"regex": f"^{re.escape(bare)}/?"}, "substitution": "/"}}
    yield from _preview(service, _wanting_preview(match), rewrite)
    yield from _live(service, match, rewrite)


def _wanting_preview(match: dict[str, Any]) -> dict[str, Any]:
    return {**match, "headers": _WANTS_PREVIEW}


def _live(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if service.mirrored:
        return _mirrored(service, match, rewrite)
    if not service.weight:
        return routed({"cluster": service.name}, service, match, rewrite)
    beside = service.baseline_weight
    shares = [(service.name, WHOLE - service.weight - beside), (canary_cluster(service.name), service.weight)]
    if beside:
        shares.insert(1, (baseline_cluster(service.name), beside))
    weighted: dict[str, Any] = {"clusters": [{"name": name, "weight": weight} for name, weight in shares]}
    if service.sticky:
        return _sticky(cookie_of(service.sticky), weighted, service, match, rewrite)
    return routed({"weighted_clusters": weighted}, service, match, rewrite)


def _mirrored(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Copies of what only reads and ends: no websocket and no event stream, whose copies would stay open unheard."""
    copies = {
        "cluster": mirror_cluster(service.name),
        "runtime_fraction": {"default_value": {"numerator": service.mirrored, "denominator": "TEN_THOUSAND"}},
        "disable_shadow_host_suffix_append": True,
    }
    where = {"cluster": service.name}
    reads = {**match, "headers": [*match.get("headers", []), *_ONLY_READS]}
    yield next(routed({**where, "request_mirror_policies": [copies]}, service, reads, rewrite))
    yield from routed(where, service, match, rewrite)


def _sticky(
    cookie: str, weighted: dict[str, Any], service: Service, match: dict[str, Any], rewrite: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """A hash of the cookie is the caller's place among 10,000. Who has none gets the id that this request is hashed by.

    The canary's places are the last ones and more and more of them:

        weight 5 %    control ................................... 9,500 canary
        weight 50 %   control ................. 5,000 canary .................
    """
    by_hash = {"weighted_clusters": {**weighted, "use_hash_policy": True}}
    has_one = {"name": "cookie", "string_match": {"contains": f"{cookie}="}}
    known = {**match, "headers": [*match.get("headers", []), has_one]}
    yield from routed({**by_hash, "hash_policy": [{"cookie": {"name": cookie}}]}, service, known, rewrite)
    given = f"{cookie}=%REQ({_REQUEST_ID})%; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax"
    new = {**by_hash, "hash_policy": [{"header": {"header_name": _REQUEST_ID}}]}
    for route in routed(new, service, match, rewrite):
        yield {**route, "response_headers_to_add": [{"header": {"key": "set-cookie", "value": given}}]}


def _preview(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """To the coming revision, or a refusal: a request that asks for a preview is never answered by what is live."""
    if service.preview:
        yield from routed({"cluster": preview_cluster(service.name)}, service, match, rewrite)
    else:
        yield _refusal(match, 503, f"Rollway: {service.name} has no revision to preview at the moment.\n")


def _refusal(match: dict[str, Any], status: int, sentence: str) -> dict[str, Any]:
    return {"match": match, "direct_response": {"status": status, "body": {"inline_string": sentence}}}


_NOT_HERE = f"Rollway: {PAGE_HOST} is the page's alone, at the port of the server for people.\n"
_OF_THE_PAGE = {"name": "page", "domains": [PAGE_HOST], "routes": [_refusal({"prefix": "/"}, 421, _NOT_HERE)]}
"""A script of a service that answered by the page's host name could replace the session of who is logged in."""
