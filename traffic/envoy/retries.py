"""Envoy's routes to one place: which requests are tried again, and when to a second replica.

Requests wait while nothing serves: at a listener of the proxy itself, from which they are sent again.
"""

from collections.abc import Iterator
from typing import Any

from domain.traffic.snapshot import RequestRules
from traffic.envoy.envoy_names import PAGES, page_key
from traffic.routing_table import Service

HELD_LISTENER = "rollway-held"
"""The bootstrap's listener for waiting requests: it answers the first try at once, and later ones after a round."""
HELD_HEADER = "x-rollway-held"
"""The header of its answers; no client sees it."""
HELD_ROUND_SECONDS = 0.5
"""The longest time until a waiting request finds a replica that is there."""


def held_place() -> dict[str, Any]:
    """Return the endpoint of a cluster without replicas."""
    return {
        "endpoint": {"address": {"envoy_internal_address": {"server_listener_name": HELD_LISTENER}}},
        "metadata": {"filter_metadata": {"envoy.lb": {"serving": "yes"}}},
    }


def held_retry(rules: RequestRules, retry_on: str) -> dict[str, Any]:
    """Return the tries of a request that came while nothing served: one in each round, with little in between."""
    rounds = round((rules.hold_seconds or 0) / HELD_ROUND_SECONDS)
    return {
        "retry_on": f"{retry_on},retriable-headers",
        "retriable_headers": _HELD_HEADERS,
        "num_retries": max(1, rounds),
        "retry_back_off": {"base_interval": "0.025s", "max_interval": "0.05s"},
    }


def held_threshold(rules: RequestRules) -> dict[str, Any]:
    """The limit of waiting requests: as many retries of this priority, which only they use."""
    return {"priority": "HIGH", "max_retries": rules.hold_callers}


_HELD_HEADERS = [{"name": HELD_HEADER, "present_match": True}]


_IDEMPOTENT = ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE")
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
    # what a canary's replica could not answer goes to an old one
    "retry_priority": {
        "name": "envoy.retry_priorities.previous_priorities",
        "typed_config": {
            "@type": "type.googleapis.com/"
            "envoy.extensions.retry.priority.previous_priorities.v3.PreviousPrioritiesConfig",
            "update_frequency": 1,
        },
    },
}
# No condition looks at a status: what a replica answered, 5xx too, reaches the client untouched and only once.
_IDEMPOTENT_ON = "connect-failure,refused-stream,reset"
_UNSENT_ON = "connect-failure,refused-stream,reset-before-request"


def routed(
    where: dict[str, Any], service: Service, match: dict[str, Any], rewrite: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The routes of what matches to one place: those that may be tried again whatever has been sent, and the others."""
    action = {
        **where,
        "metadata_match": {"filter_metadata": {"envoy.lb": {"serving": "yes"}}},
        "timeout": f"{service.rules.timeout_seconds or 0:.3f}s",
        "idle_timeout": f"{service.rules.idle_timeout_seconds or 0:.3f}s",
        **rewrite,
    }
    methods = {"name": ":method", "string_match": {"safe_regex": {"regex": "|".join(_IDEMPOTENT)}}}
    idempotent = {**match, "headers": [*match.get("headers", []), methods]}
    yield {"match": idempotent, "route": {**action, **_again_idempotent(service)}, **_own(service)}
    yield {"match": match, "route": {**action, **_again_unsent(service)}, **_own(service)}


def _again_idempotent(service: Service) -> dict[str, Any]:
    if service.rules.hold_seconds is not None:
        return _again_unsent(service)
    seconds = _hedge_after(service.rules)
    timed = {"per_try_timeout": f"{seconds:.3f}s"} if seconds else {}
    return {**_hedged(service.rules), "retry_policy": {"retry_on": _IDEMPOTENT_ON, **_BACK_OFF, **timed}}


def _again_unsent(service: Service) -> dict[str, Any]:
    """Requests that may wait have a try for each round from the beginning, whether something serves now or not.

    A proxy knows that nothing serves a moment before it knows another route, and a request in between would have few
    tries. More tries send nothing twice that has reached a replica.
    """
    if service.rules.hold_seconds is not None:
        return {"priority": "HIGH", "retry_policy": {**_BACK_OFF, **held_retry(service.rules, _UNSENT_ON)}}
    return {"retry_policy": {"retry_on": _UNSENT_ON, **_BACK_OFF}}


def _own(service: Service) -> dict[str, Any]:
    """Give the pages that the bootstrap looks for in the route's metadata."""
    pages = {page_key(status): page for status, page in service.rules.pages}
    return {"metadata": {"filter_metadata": {PAGES: pages}}} if pages else {}


def _hedged(rules: RequestRules) -> dict[str, Any]:
    """The first request continues when a second one is sent: what is slow and not hung is not sent for nothing."""
    return {"hedge_policy": {"hedge_on_per_try_timeout": True}} if _hedge_after(rules) else {}


def _hedge_after(rules: RequestRules) -> float | None:
    """The wait before the second request: at most half of the longest time, so that the second has the other half."""
    if rules.hedge_after_seconds is None or rules.timeout_seconds is None:
        return rules.hedge_after_seconds
    return min(rules.hedge_after_seconds, rules.timeout_seconds / 2)
