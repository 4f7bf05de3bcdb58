"""What the log tells of replicas: a line for each that became healthy, failed, was killed after its grace, is gone."""

import logging
from collections.abc import Iterable

import structlog

from db.replicas.reports import ReportedRoute
from db.replicas.routes import RouteRow
from domain.model.deployment import RouteStatus
from domain.replicas.drain import killed_in_words

_LEVELS = {RouteStatus.FAILED.value: logging.WARNING, RouteStatus.UNHEALTHY.value: logging.WARNING}
_log = structlog.get_logger(__name__)


def log_reported(routes: Iterable[ReportedRoute]) -> None:
    """What became of them, once it is committed."""
    for route in routes:
        _log.log(
            _LEVELS.get(route.status, logging.INFO),
            "replica",
            deployment=route.deployment,
            revision=route.revision,
            rollout=str(route.rollout_id) if route.rollout_id else None,
            route=str(route.id),
            host=route.host,
            **{"from": route.was, "to": route.status},
            reason=route.reason,
        )


def log_killed(route: RouteRow, host: str) -> None:
    """One that had its time to end and did not use it: what it was answering is cut."""
    reason = killed_in_words(route.spec.stop_grace_seconds)
    _log.warning("replica", **_of(route, host), to="killed", reason=reason)


def log_gone(routes: Iterable[RouteRow], host: str) -> None:
    """Replicas that are known to run no more are told."""
    for route in routes:
        _log.info("replica", **_of(route, host), to="gone", reason="its process has ended")


def _of(route: RouteRow, host: str) -> dict[str, object]:
    return {
        "deployment": route.deployment,
        "revision": route.revision,
        "route": str(route.id),
        "host": host,
        "from": route.status.value,
    }
