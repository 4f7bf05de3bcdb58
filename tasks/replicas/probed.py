"""A route with its replica, in the words of the rules of health: what is known of it, its check, and its end."""

from db.replicas.reports import RouteReport
from db.replicas.routes import RouteRow
from domain.model.states import RouteStatus
from domain.replicas.health import ProbedRoute, ProbeResult, end_in_words, unread_status
from domain.revisions.health_check import HealthCheck
from runtime.base import Replica

_REPORT_IN_TIME = HealthCheck()


def probed_route(route: RouteRow) -> ProbedRoute:
    """Return what is known of a route before a probe. Raises ValueError for one that was not started."""
    if route.started_at is None:
        raise ValueError(f"route {route.id} is probed before it was started")
    return ProbedRoute(route.status, route.started_at, route.probe_streak)


def check_of(route: RouteRow) -> HealthCheck | None:
    """An external replica without a check is as it was reported; it is waited for as long as one with a check."""
    waits_for_report = route.spec.external is not None and route.status is RouteStatus.PROVISIONING
    return route.spec.health_check or (_REPORT_IN_TIME if waits_for_report else None)


def report_of_unread(route: RouteRow) -> RouteReport | None:
    """Return what a route becomes whose revision this release cannot read."""
    status = route.status if route.unreadable is None else unread_status(route.status)
    if status is route.status:
        return None
    return RouteReport(route.id, route.deployment_id, route.status, status, reason=route.unreadable)


def runs(replica: Replica | None) -> bool:
    """Whether it is there, and has not ended."""
    return replica is not None and replica.running


def end_of(replica: Replica | None) -> ProbeResult:
    """Return what a probe finds of one that has ended."""
    if replica is None:
        return ProbeResult(running=False, answered=None, detail="its process is gone")
    why = f"; {replica.cause}" if replica.cause else ""
    return ProbeResult(running=False, answered=None, detail=end_in_words(replica.exit_code) + why)
