"""What becomes of the replicas of a host that falls silent, counted in looks at its signs of life.

    looks in a row without a fresh sign     0 1 2 3       4 5 6 7     8 ...       (15 s of silence are 8 looks)
    its running routes                      as they are   degraded    failed: the host is down

Looks are counted, not seconds: while nobody looked, nobody could be heard.
"""

from domain.replicas.events import ROUTE_CADENCES, RouteLifecycleType


def looks_until_down(seconds: float) -> int:
    """Silent looks in a row after which a host is down: those that fit into `seconds` of silence, one at least."""
    return max(1, round(seconds / ROUTE_CADENCES[RouteLifecycleType.HOSTS]))


def looks_until_degraded(seconds: float) -> int:
    """Silent looks in a row after which a host's running routes are degraded: half of the others, rounded up."""
    return (looks_until_down(seconds) + 1) // 2
