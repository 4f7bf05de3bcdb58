"""What becomes of the replicas of a host that falls silent, counted in looks at its signs of life.

    looks in a row without a fresh sign     0 1 2 3       4 5 6 7     8 ...       (15 s of silence are 8 looks)
    its running routes                      as they are   degraded    failed: the host is down

Looks are counted, not seconds: while nobody looked, nobody could be heard.
"""

from dataclasses import dataclass

from domain.replicas.events import ROUTE_CADENCES, RouteLifecycleType


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """Silent looks in a row after which running routes are degraded, and after which the host is down."""

    degraded: int
    down: int


def limits_of_silence(seconds: float) -> SilenceLimits:
    """The looks that fit into `seconds` of silence, one at least; half of them, rounded up, degrade."""
    down = max(1, round(seconds / ROUTE_CADENCES[RouteLifecycleType.HOSTS]))
    return SilenceLimits((down + 1) // 2, down)
