"""How requests wait while nothing serves: at a listener of the proxy itself, from which they are sent again."""

from typing import Any

from domain.traffic.snapshot import RequestRules

LISTENER = "rollway-held"
"""The bootstrap's listener for them: it answers the first try at once, and later ones after a round."""
HEADER = "x-rollway-held"
"""What its answers have; no client sees it."""
ROUND_SECONDS = 0.5
"""The longest time until a waiting request finds a replica that is there."""


def place() -> dict[str, Any]:
    """Return the endpoint of a cluster without replicas."""
    return {
        "endpoint": {"address": {"envoy_internal_address": {"server_listener_name": LISTENER}}},
        "metadata": {"filter_metadata": {"envoy.lb": {"serving": "yes"}}},
    }


def retried(rules: RequestRules, retry_on: str) -> dict[str, Any]:
    """Return the tries of a request that came while nothing served: one in each round, with little in between."""
    rounds = round((rules.hold_seconds or 0) / ROUND_SECONDS)
    return {
        "retry_on": f"{retry_on},retriable-headers",
        "retriable_headers": KNOWN,
        "num_retries": max(1, rounds),
        "retry_back_off": {"base_interval": "0.025s", "max_interval": "0.05s"},
    }


def threshold(rules: RequestRules) -> dict[str, Any]:
    """The limit of waiting requests: as many retries of this priority, which only they use."""
    return {"priority": "HIGH", "max_retries": rules.hold_callers}


KNOWN = [{"name": HEADER, "present_match": True}]
