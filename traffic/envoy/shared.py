"""Envoy's routes to the replicas of a deployment: its shares of a canary, copies of requests, callers who stay."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

from domain.traffic.chosen import Chosen
from domain.words.numbers import WHOLE
from traffic.envoy.names import COOKIE_SECONDS, baseline_cluster, canary_cluster, cookie_of, mirror_cluster
from traffic.envoy.retries import routed
from traffic.table import Service

_REQUEST_ID = "x-request-id"
"""Envoy gives each request one, a random UUID, whatever a client sent."""
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
    """The routes of what matches to all that serve, each of which gets its share."""
    if service.is_held:
        return routed({"cluster": service.name}, service, match, rewrite)
    if service.mirrored:
        return _mirrored(service, match, rewrite)
    if not service.weight:
        return routed({"cluster": service.name}, service, match, rewrite)
    beside = service.baseline_weight
    shares = [(service.name, WHOLE - service.weight - beside), (canary_cluster(service.name), service.weight)]
    if beside:
        shares.insert(1, (baseline_cluster(service.name), beside))
    chosen = _to_canary(service.chosen, service, match, rewrite) if service.chosen else ()
    weighted: dict[str, Any] = {"clusters": [{"name": name, "weight": weight} for name, weight in shares]}
    if service.sticky:
        return chain(chosen, _sticky(cookie_of(service.sticky), weighted, service, match, rewrite))
    return chain(chosen, routed({"weighted_clusters": weighted}, service, match, rewrite))


def _to_canary(
    chosen: Chosen, service: Service, match: dict[str, Any], rewrite: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """To the canary, as `cookie: a=1; beta=yes` is for the cookie beta of the value yes."""
    if chosen.header is not None:
        wanted = {"present_match": True} if chosen.value is None else {"string_match": {"exact": chosen.value}}
        said = {"name": chosen.header.lower(), **wanted}
    else:
        value = "[^;]*" if chosen.value is None else re.escape(chosen.value)
        pair = f"(.*;)?\\s*{chosen.cookie}={value}\\s*(;.*)?"
        said = {"name": "cookie", "string_match": {"safe_regex": {"regex": pair}}}
    its = {**match, "headers": [*match.get("headers", []), said]}
    return routed({"cluster": canary_cluster(service.name)}, service, its, rewrite)


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
