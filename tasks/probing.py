"""One look at every running replica: is its process there, does it answer, and what does that make of its route."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self

import redis
from redis.exceptions import RedisError
from sqlalchemy import Engine

from db.deployments import database_now
from db.engine import in_transaction
from db.routes import RouteReport, RouteRow, apply_reports, running_routes, statuses_of
from domain.health import ProbedRoute, ProbeResult, judge_health, probe_is_due
from domain.model import RouteStatus
from domain.revision import HealthCheck
from runtime.base import Replica, Runtime
from runtime.probes import ProbeAnswer, Prober, ProbeTarget
from tasks.settings import KEY_PREFIX
from tasks.wake import Waker

LOG_TAIL_LINES = 20
_LAST_PASS = f"{KEY_PREFIX}probe:last"
_TICK = timedelta(seconds=1)


class ProbePass:
    """Looks at all running routes, again and again while one is starting. A context manager, for one thread."""

    def __init__(self, engine: Engine, runtimes: Mapping[str, Runtime], waker: Waker, client: redis.Redis) -> None:
        self._engine = engine
        self._runtimes = runtimes
        self._waker = waker
        self._client = client
        self._prober = Prober()

    def __enter__(self) -> Self:
        self._prober.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._prober.__exit__(kind, error, at)

    def look(self) -> bool:
        """Probe what is due, write what changed. True while a replica is starting."""
        routes, now = in_transaction(
            self._engine, lambda connection: (running_routes(connection), database_now(connection))
        )
        since = self._since(now)
        replicas = {route.id: self._runtimes[route.spec.runtime].find(route.id) for route in routes}
        due = [route for route in routes if _runs(replicas[route.id]) and _is_due(route, since, now)]
        answers = self._prober.probe_many([_target(route) for route in due])
        reports = [
            report
            for route in routes
            if (report := self._report(route, replicas[route.id], answers.get(route.id), now)) is not None
        ]
        self._write(reports)
        return any(route.status is RouteStatus.PROVISIONING for route in routes)

    def _write(self, reports: Sequence[RouteReport]) -> None:
        if not reports:
            return
        statuses = in_transaction(
            self._engine, lambda connection: statuses_of(connection, apply_reports(connection, reports))
        )
        self._waker.deployments(statuses)

    def _report(
        self, route: RouteRow, replica: Replica | None, answer: ProbeAnswer | None, now: datetime
    ) -> RouteReport | None:
        """What changed, or None."""
        known = _known(route)
        verdict = judge_health(route.spec.health_check, known, _result(replica, answer), now)
        if (verdict.status, verdict.streak) == (known.status, known.streak):
            return None
        ended = verdict.status is RouteStatus.FAILED
        tail = self._runtimes[route.spec.runtime].log_tail(route.id, LOG_TAIL_LINES) if ended else None
        return RouteReport(
            route.id, route.endpoint_id, route.status, verdict.status, verdict.streak, verdict.reason, log_tail=tail
        )

    def _since(self, now: datetime) -> datetime:
        """When the last look was, whichever worker made it; one tick ago when nobody remembers."""
        try:
            before = self._client.getset(_LAST_PASS, now.isoformat())
        except RedisError:
            before = None
        return datetime.fromisoformat(before.decode()) if isinstance(before, bytes) else now - _TICK


def _runs(replica: Replica | None) -> bool:
    return replica is not None and replica.running


def _known(route: RouteRow) -> ProbedRoute:
    if route.started_at is None:
        raise ValueError(f"route {route.id} is probed before it was started")
    return ProbedRoute(route.status, route.started_at, route.probe_streak)


def _is_due(route: RouteRow, since: datetime, now: datetime) -> bool:
    """A starting replica at every look; one that runs when a multiple of its interval lies between the two looks.

    Each route counts from its own start, so that a thousand routes are not probed in the same instant.
    """
    check = route.spec.health_check
    if check is None or not probe_is_due(check, _known(route), now):
        return False
    if route.status is RouteStatus.PROVISIONING:
        return True
    return _intervals(check, _known(route), now) > _intervals(check, _known(route), since)


def _intervals(check: HealthCheck, route: ProbedRoute, at: datetime) -> int:
    return int((at - route.started_at).total_seconds() // check.interval_seconds)


def _target(route: RouteRow) -> ProbeTarget:
    check = route.spec.health_check
    if check is None or route.address is None:
        raise ValueError(f"route {route.id} has nothing to probe")
    return ProbeTarget(route.id, route.address, check)


def _result(replica: Replica | None, answer: ProbeAnswer | None) -> ProbeResult:
    if replica is None:
        return ProbeResult(running=False, answered=None, detail="its process is gone")
    if not replica.running:
        code = "" if replica.exit_code is None else f" with exit code {replica.exit_code}"
        return ProbeResult(running=False, answered=None, detail=f"its process ended{code}")
    if answer is None:
        return ProbeResult(running=True, answered=None, detail="not probed yet")
    return ProbeResult(running=True, answered=answer.ok, detail=answer.detail)
