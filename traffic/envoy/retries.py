"""Envoy's routes to one place: which requests are tried again, and when to a second replica."""

from collections.abc import Iterator
from typing import Any

from domain.traffic.published import RequestRules
from traffic.table import Service

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
    # what a canary's replica could not answer goes to who stands in for it
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
_RETRY_IDEMPOTENT = {"retry_on": "connect-failure,refused-stream,reset", **_BACK_OFF}
_RETRY_UNSENT = {"retry_on": "connect-failure,refused-stream,reset-before-request", **_BACK_OFF}


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
