"""Envoy's route configuration: which request belongs to which deployment, when it is tried again, what is refused."""

import re
from collections.abc import Iterator
from typing import Any

from domain.traffic.published import WHOLE, RequestRules
from traffic.table import COOKIE_SECONDS, Service, TrafficTable
from traffic.ways import Prefix

ROUTE_CONFIGURATION = "rollway"
"""Its name; the bootstrap's listener asks for it."""
PREVIEW_HEADER = "x-rollway-preview"
"""A request with it, unless its value is "false", goes to the revision that is being rolled out."""

_REQUEST_ID = "x-request-id"
"""Envoy gives each request one, a random UUID, whatever a client sent."""
_IDEMPOTENT = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE")
_WANTS_PREVIEW = [
    {"name": PREVIEW_HEADER, "present_match": True},
    {"name": PREVIEW_HEADER, "string_match": {"exact": "false", "ignore_case": True}, "invert_match": True},
]
_BACK_OFF = {
    "retry_back_off": {"base_interval": "0.01s", "max_interval": "0.25s"},
    "num_retries": 3,
    "retry_host_predicate": [
        {
            "name": "envoy.retry_host_predicates.previous_hosts",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"
            },
        }
    ],
    "host_selection_retry_max_attempts": 10,
}
# No condition looks at a status: what a replica answered, 5xx too, reaches the client untouched and only once.
_RETRY_IDEMPOTENT = {"retry_on": "connect-failure,refused-stream,reset", **_BACK_OFF}
_RETRY_UNSENT = {"retry_on": "connect-failure,refused-stream,reset-before-request", **_BACK_OFF}


def preview_cluster(name: str) -> str:
    """The name of the cluster of the replicas that are not in traffic yet. No deployment's name has a slash."""
    return f"{name}/preview"


def canary_cluster(name: str) -> str:
    """The name of the cluster of the replicas that get a canary's share."""
    return f"{name}/canary"


def baseline_cluster(name: str) -> str:
    """The name of the cluster of the replicas that a canary is compared with."""
    return f"{name}/baseline"


def route_configuration(table: TrafficTable) -> dict[str, Any]:
    """A virtual host for the host names of each deployment, and another for all path prefixes, the longest first."""
    prefixes = [(prefix, service) for service in table.services for prefix in service.prefixes]
    prefixes.sort(key=lambda pair: (-len(pair[0].value), pair[0].value))
    by_prefix = [route for prefix, service in prefixes for route in _by_prefix(prefix, service)]
    return {
        "name": ROUTE_CONFIGURATION,
        "ignore_port_in_host_matching": True,
        "virtual_hosts": [
            *(host for service in table.services for host in _virtual_hosts(service)),
            {
                "name": "by-prefix",
                "domains": ["*"],
                "routes": [*by_prefix, _refusal({"prefix": "/"}, 404, _NOBODY)],
            },
        ],
    }


_NOBODY = "Rollway: no deployment is reached by this host name or path. 'rollway status' lists those that exist.\n"


def _virtual_hosts(service: Service) -> Iterator[dict[str, Any]]:
    everything: dict[str, Any] = {"prefix": "/"}
    if service.hosts:
        yield {
            "name": service.name,
            "domains": list(service.hosts),
            "routes": [*_preview(service, _wanting_preview(everything), {}), *_live(service, everything, {})],
        }
    if service.preview_hosts:
        yield {
            "name": preview_cluster(service.name),
            "domains": list(service.preview_hosts),
            "routes": list(_preview(service, everything, {})),
        }


def _by_prefix(prefix: Prefix, service: Service) -> Iterator[dict[str, Any]]:
    """Both "/web" and "/web/..."; with `strip` the replica sees "/..."."""
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
    if not service.weight:
        return _routed({"cluster": service.name}, service, match, rewrite)
    beside = service.baseline_weight
    shares = [(service.name, WHOLE - service.weight - beside), (canary_cluster(service.name), service.weight)]
    if beside:
        shares.insert(1, (baseline_cluster(service.name), beside))
    weighted: dict[str, Any] = {"clusters": [{"name": name, "weight": weight} for name, weight in shares]}
    if service.cookie:
        return _sticky(service.cookie, weighted, service, match, rewrite)
    return _routed({"weighted_clusters": weighted}, service, match, rewrite)


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
    yield from _routed({**by_hash, "hash_policy": [{"cookie": {"name": cookie}}]}, service, known, rewrite)
    given = f"{cookie}=%REQ({_REQUEST_ID})%; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax"
    new = {**by_hash, "hash_policy": [{"header": {"header_name": _REQUEST_ID}}]}
    for route in _routed(new, service, match, rewrite):
        yield {**route, "response_headers_to_add": [{"header": {"key": "set-cookie", "value": given}}]}


def _preview(service: Service, match: dict[str, Any], rewrite: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """To the coming revision, or a refusal: a request that asks for a preview is never answered by what is live."""
    if service.preview:
        yield from _routed({"cluster": preview_cluster(service.name)}, service, match, rewrite)
    else:
        yield _refusal(match, 503, f"Rollway: {service.name} has no revision to preview at the moment.\n")


def _routed(
    where: dict[str, Any], service: Service, match: dict[str, Any], rewrite: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    action = {
        **where,
        "metadata_match": {"filter_metadata": {"envoy.lb": {"serving": "yes"}}},
        "timeout": f"{service.rules.timeout_seconds or 0:.3f}s",
        "idle_timeout": f"{service.rules.idle_timeout_seconds or 0:.3f}s",
        **rewrite,
    }
    methods = {"name": ":method", "string_match": {"safe_regex": {"regex": "|".join(_IDEMPOTENT)}}}
    idempotent = {**match, "headers": [*match.get("headers", []), methods]}
    yield {"match": idempotent, "route": {**action, **_hedged(service.rules), "retry_policy": _retried(service.rules)}}
    yield {"match": match, "route": {**action, "retry_policy": _RETRY_UNSENT}}


def _retried(rules: RequestRules) -> dict[str, Any]:
    seconds = _hedge_after(rules)
    return {**_RETRY_IDEMPOTENT, "per_try_timeout": f"{seconds:.3f}s"} if seconds else _RETRY_IDEMPOTENT


def _hedged(rules: RequestRules) -> dict[str, Any]:
    """The first request goes on when a second one is sent: what is slow and not hung is not sent for nothing."""
    return {"hedge_policy": {"hedge_on_per_try_timeout": True}} if _hedge_after(rules) else {}


def _hedge_after(rules: RequestRules) -> float | None:
    """At half of the time that a request may take, when that comes first, so that the second one has a half too."""
    if rules.hedge_after_seconds is None or rules.timeout_seconds is None:
        return rules.hedge_after_seconds
    return min(rules.hedge_after_seconds, rules.timeout_seconds / 2)


def _refusal(match: dict[str, Any], status: int, sentence: str) -> dict[str, Any]:
    return {"match": match, "direct_response": {"status": status, "body": {"inline_string": sentence}}}
