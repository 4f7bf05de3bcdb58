"""A world without a database: replicas that start and stop, and a clock that jumps to what comes next."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from domain.after import after
from domain.handlers import HANDLERS, woken_by
from domain.handlers.base import DeploymentHandler
from domain.model import Deployment, RouteStatus
from domain.replicas.reported import reported
from domain.transitions import ClassifiedDecision
from tests.support.pictures import NOW


def handler_of(deployment: Deployment) -> DeploymentHandler:
    event = woken_by(deployment.status)
    assert event is not None, f"no handler with a short cadence looks at {deployment.status}"
    return HANDLERS[event]


def cycle(deployment: Deployment, now: datetime, handler: DeploymentHandler | None = None) -> ClassifiedDecision:
    """One pass of the handler of the deployment's status."""
    (classified,) = (handler or handler_of(deployment)).execute([deployment], now).decisions
    return classified


def applied(decision: ClassifiedDecision, now: datetime, *, stopping: bool = False) -> Deployment:
    """The next snapshot. `stopping`: drained routes stay as terminating until `stopped`, as they really do."""
    deployment = after(decision, now)
    return deployment if stopping else stopped(deployment)


def stopped(deployment: Deployment) -> Deployment:
    """Every replica that was stopping is gone."""
    left = tuple(route for route in deployment.routes if route.status is not RouteStatus.TERMINATING)
    return replace(deployment, routes=left)


def with_status(
    deployment: Deployment, ids: Iterable[UUID], status: RouteStatus, now: datetime, *, blame: bool = True
) -> Deployment:
    """The world: these replicas are found to be so."""
    return reported(deployment, dict.fromkeys(ids, status), now, blame=blame)


def all_started(deployment: Deployment, now: datetime) -> Deployment:
    """Every provisioning route becomes healthy."""
    starting = [route.id for route in deployment.routes if route.status is RouteStatus.PROVISIONING]
    return with_status(deployment, starting, RouteStatus.HEALTHY, now)


def until_it_waits(deployment: Deployment, now: datetime, most: int = 50) -> Deployment:
    """Cycles while the world stands still and something is due at once."""
    for _ in range(most):
        classified = cycle(deployment, now)
        deployment = applied(classified, now)
        if classified.due_at is None or classified.due_at > now:
            return deployment
    raise AssertionError(f"still moving after {most} cycles in which nothing happened: {classified.reason}")


@dataclass
class World:
    """A deployment on a clock that jumps to what comes next: a start or a stop that ends, or `due_at`.

    There is no tick: a deployment is looked at when one of its routes changes and when it said so itself.
    `stop_seconds`: how long a drained replica is stopping; None: it is gone at once, and nobody is told.
    """

    deployment: Deployment
    start_seconds: float = 1.0
    stop_seconds: float | None = None
    starts_fail: bool = False
    now: datetime = NOW
    due_at: datetime | None = NOW
    created: int = 0
    decisions: list[ClassifiedDecision] = field(default_factory=list)
    decided_at: list[datetime] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        """Until nothing more can happen, or `seconds` have passed."""
        ends = self.now + timedelta(seconds=seconds)
        while (at := self._next()) is not None and at <= ends:
            self.now = max(self.now, at)
            self._routes_change()
            decision = cycle(self.deployment, self.now)
            self.decisions.append(decision)
            self.decided_at.append(self.now)
            self.created += decision.changes.created
            self.deployment = applied(decision, self.now, stopping=self.stop_seconds is not None)
            self.due_at = decision.due_at
            assert len(self.decisions) < 5000, f"never rests: {decision.reason}"

    def _start_ends(self) -> list[tuple[datetime, UUID]]:
        takes = timedelta(seconds=self.start_seconds)
        return [(r.created_at + takes, r.id) for r in self.deployment.routes if r.status is RouteStatus.PROVISIONING]

    def _stop_ends(self) -> list[tuple[datetime, UUID]]:
        takes = timedelta(seconds=self.stop_seconds or 0)
        return [
            (r.status_changed_at + takes, r.id)
            for r in self.deployment.routes
            if r.status is RouteStatus.TERMINATING and self.stop_seconds is not None
        ]

    def _next(self) -> datetime | None:
        if woken_by(self.deployment.status) is None:
            return None
        changes = (at for at, _ in (*self._start_ends(), *self._stop_ends()))
        return min((at for at in (self.due_at, *changes) if at is not None), default=None)

    def _routes_change(self) -> None:
        ended = [route_id for at, route_id in self._start_ends() if at <= self.now]
        status = RouteStatus.FAILED if self.starts_fail else RouteStatus.HEALTHY
        self.deployment = with_status(self.deployment, ended, status, self.now)
        gone = {route_id for at, route_id in self._stop_ends() if at <= self.now}
        left = tuple(route for route in self.deployment.routes if route.id not in gone)
        self.deployment = replace(self.deployment, routes=left)
