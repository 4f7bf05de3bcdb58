"""Envoy's routes to the replicas of a deployment: its shares of a canary, copies of requests, callers who stay."""

import re
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from domain.text.numbers import WHOLE
from domain.traffic.caller_match import Chosen
from traffic.envoy.clusters import led_to, shares_of
from traffic.envoy.envoy_names import COOKIE_SECONDS, baseline_cluster, canary_cluster, cookie_of, mirror_cluster
from traffic.envoy.listeners import is_secured
from traffic.envoy.retries import routed
from traffic.routing_table import Service

_REQUEST_ID = "x-request-id"
"""The header with the random UUID that Envoy gives each request, whatever a client sent."""
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


def to_replicas(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The routes of matching requests to all serving replicas, each side with its share."""
    where = leading_to(service)
    if service.mirrored and not service.is_held:
        return _mirrored(where, service, match, rewrite)
    caller = service.chosen if _is_shared(service) else None
    first = _to_canary(caller, service, match, rewrite) if caller else ()
    return chain(first, _staying(where, service, match, rewrite))


def leading_to(service: Service) -> dict[str, Any]:
    """The clusters of all sides that have a share."""
    if not _is_shared(service):
        return led_to(shares_of(service, service.name), by_hash=service.rules.sticky is not None)
    canary, baseline = service.weight, service.baseline_weight
    shares = shares_of(service, service.name, WHOLE - canary - baseline)
    if baseline:
        shares += shares_of(service, baseline_cluster(service.name), baseline)
    shares += shares_of(service, canary_cluster(service.name), canary)
    return led_to(shares, by_hash=bool(service.sticky or service.rules.sticky))


def _is_shared(service: Service) -> bool:
    """Whether a canary has a share of the requests."""
    return bool(service.weight) and not service.mirrored and not service.is_held


def _to_canary(
    caller: Chosen, service: Service, match: dict[str, Any], rewrite: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The match for the canary: `cookie: a=1; beta=yes` has the cookie beta with the value yes."""
    if caller.header is not None:
        matcher = {"present_match": True} if caller.value is None else {"string_match": {"exact": caller.value}}
        header = {"name": caller.header, **matcher}
    else:
        value = "[^;]*" if caller.value is None else re.escape(caller.value)
        pair = f"(.*;)?\\s*{re.escape(caller.cookie or '')}={value}\\s*(;.*)?"
        header = {"name": "cookie", "string_match": {"safe_regex": {"regex": pair}}}
    its = {**match, "headers": [*match.get("headers", []), header]}
    where = led_to(shares_of(service, canary_cluster(service.name)))
    return _staying(where, service, its, rewrite)


def _mirrored(
    where: dict[str, Any], service: Service, match: dict[str, Any], rewrite: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Copies of requests that only read and end: no websocket and no event stream, whose copies would stay open."""
    copies = {
        "cluster": shares_of(service, mirror_cluster(service.name))[0][0],
        "runtime_fraction": {"default_value": {"numerator": service.mirrored, "denominator": "TEN_THOUSAND"}},
        "disable_shadow_host_suffix_append": True,
    }
    reads = {**match, "headers": [*match.get("headers", []), *_ONLY_READS]}
    # every second route is for other methods
    yield from islice(_staying({**where, "request_mirror_policies": [copies]}, service, reads, rewrite), None, None, 2)
    yield from _staying(where, service, match, rewrite)


def _staying(
    where: dict[str, Any], service: Service, match: dict[str, Any], rewrite: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Routes by which a caller stays: with a replica, or at least on a side of a canary. A hash finds both.

    A hash of the cookie is the caller's place among 10,000. A caller without a cookie gets the id that this request is
    hashed by. The canary's places are the last ones and more and more of them:

        weight 5 %    control ................................... 9,500 canary
        weight 50 %   control ................. 5,000 canary .................
    """
    always = service.rules.sticky
    if always and always.header:
        return routed({**where, "hash_policy": [_by_header(always.header)]}, service, match, rewrite)
    if always and always.cookie:
        return _by_cookie(always.cookie, where, service, match, rewrite)
    if service.sticky and _is_shared(service) and "weighted_clusters" in where:
        return _by_cookie(cookie_of(service.sticky), where, service, match, rewrite)
    return routed(where, service, match, rewrite)


def _by_cookie(
    cookie: str, where: dict[str, Any], service: Service, match: dict[str, Any], rewrite: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    has_one = {"name": "cookie", "string_match": {"safe_regex": {"regex": f"(.*; *)?{re.escape(cookie)}=[^; ].*"}}}
    with_cookie = {**match, "headers": [*match.get("headers", []), has_one]}
    yield from routed({**where, "hash_policy": [{"cookie": {"name": cookie}}]}, service, with_cookie, rewrite)
    secure = "; Secure" if _is_only_secured(service) else ""
    cookie_line = f"{cookie}=%REQ({_REQUEST_ID})%; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}"
    for route in routed({**where, "hash_policy": [_by_header(_REQUEST_ID)]}, service, match, rewrite):
        yield {**route, "response_headers_to_add": [{"header": {"key": "set-cookie", "value": cookie_line}}]}


def _by_header(name: str) -> dict[str, Any]:
    return {"header": {"header_name": name}}


def _is_only_secured(service: Service) -> bool:
    """Whether callers need TLS; browsers drop a cookie that is for TLS alone on a connection without it."""
    tls = service.rules.tls
    sent_on = tls is not None and (tls.redirect or service.asks_callers)
    return sent_on and not service.prefixes and is_secured(service)
