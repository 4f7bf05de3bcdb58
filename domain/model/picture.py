"""Replicas drawn as one line: old|new, e.g. ■■|◇.

■ healthy   □ healthy, without traffic   △ degraded   ▲ unhealthy   ◇ provisioning   ✗ failed
"""

from collections.abc import Iterable
from uuid import UUID

from domain.model.deployment import Route
from domain.model.states import RouteStatus, TrafficStatus

_SYMBOLS = {
    RouteStatus.HEALTHY: "■",
    RouteStatus.DEGRADED: "△",
    RouteStatus.UNHEALTHY: "▲",
    RouteStatus.PROVISIONING: "◇",
    RouteStatus.FAILED: "✗",
}
_ORDER = "■□△▲◇?✗"


def symbol(status: RouteStatus, traffic: TrafficStatus) -> str:
    """One character for one replica; empty for one that is stopping or gone, "?" for a status without a character."""
    if status in (RouteStatus.TERMINATING, RouteStatus.TERMINATED):
        return ""
    if status is RouteStatus.HEALTHY and traffic is TrafficStatus.INACTIVE:
        return "□"
    return _SYMBOLS.get(status, "?")


def picture(routes: Iterable[Route], current_revision_id: UUID | None, deploying_revision_id: UUID | None) -> str:
    """Draw what goes on the left, what comes on the right; the healthiest first on each side.

    During a rollout: every other revision | the deploying one. Outside of one: other revisions | the current one, and
    no bar when there is but the current one. Replicas that are stopping or gone are left out.
    """
    target = deploying_revision_id or current_revision_id
    left_side, right = "", ""
    for route in routes:
        mark = symbol(route.status, route.traffic)
        if route.revision_id == target:
            right += mark
        else:
            left_side += mark
    if deploying_revision_id is None and not left_side:
        return _in_order(right)
    return f"{_in_order(left_side)}|{_in_order(right)}"


def _in_order(symbols: str) -> str:
    return "".join(sorted(symbols, key=_ORDER.index))
