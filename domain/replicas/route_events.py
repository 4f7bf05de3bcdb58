"""The events of routes, in the same form as the deployments': the kinds of looks, and their intervals."""

from enum import StrEnum


class RouteLifecycleType(StrEnum):
    """The kind of a look at routes."""

    START = "start"
    PROBE = "probe"
    STOP = "stop"
    SWEEP = "sweep"
    METRICS = "metrics"
    HOSTS = "hosts"


ROUTE_CADENCES: dict[RouteLifecycleType, float] = {
    RouteLifecycleType.SWEEP: 30,
    RouteLifecycleType.METRICS: 5,
    RouteLifecycleType.HOSTS: 2,
}
"""Seconds between two looks. Beat asks for the sweep, the alarm looks at hosts and asks for metrics where rules are."""

WHILE_THERE_IS_WORK = (RouteLifecycleType.START, RouteLifecycleType.PROBE, RouteLifecycleType.STOP)
"""Looks that the alarm asks for, each second, where there is something to look at; a change asks for them at once."""

ON_EACH_HOST = frozenset({*WHILE_THERE_IS_WORK, RouteLifecycleType.SWEEP})
"""Looks that only a worker on the replicas' own host can make; any worker asks those hosts for them."""
