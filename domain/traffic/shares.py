"""Which replicas of a deployment get which requests: all of them, a canary's share, or those of a preview."""

from domain.model import RouteStatus, TrafficStatus
from domain.traffic.published import DeploymentInTraffic, RouteInTraffic


def sides(deployment: DeploymentInTraffic) -> tuple[list[RouteInTraffic], list[RouteInTraffic]]:
    """Who gets the requests, and who gets only a canary's share of them.

    weight None                        all in traffic
    a weight, and current ones there   the current ones, and the candidates: what another canary left gets none
    a weight, and none but candidates  the candidates
    """
    active = [route for route in deployment.routes if route.traffic is TrafficStatus.ACTIVE]
    if deployment.weight is None:
        return active, []
    old = [route for route in active if not route.is_candidate]
    live = [route for route in old if route.is_current] or old
    return (live, [route for route in active if route.is_candidate]) if live else (active, [])


def is_preview(route: RouteInTraffic) -> bool:
    """Healthy, of the revision that is being rolled out, and not in traffic yet."""
    return (
        route.traffic is TrafficStatus.INACTIVE
        and route.is_candidate
        and not route.is_parked
        and route.status is RouteStatus.HEALTHY
    )
