"""A world without a database: what the applier does to a snapshot, as a pure function, and a clock that is asked."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from domain.changes import RouteChanges
from domain.handlers import HANDLERS, woken_by
from domain.handlers.base import DeploymentHandler
from domain.model import Deployment, Rollout, Route, RouteStatus, StartFailures, TrafficStatus
from domain.transitions import ClassifiedDecision, RevisionMove, clock_stood_still
from tests.support.pictures import NOW


def handler_of(deployment: Deployment) -> DeploymentHandler:
    event = woken_by(deployment.status)
    assert event is not None, f"no handler with a short cadence looks at {deployment.status}"
    return HANDLERS[event]


def cycle(deployment: Deployment, now: datetime, handler: DeploymentHandler | None = None) -> ClassifiedDecision:
    """One pass of the handler of the deployment's status."""
    (classified,) = (handler or handler_of(deployment)).execute([deployment], now).everything
    return classified


def applied(classified: ClassifiedDecision, now: datetime, *, stopping: bool = False) -> Deployment:
    """The next snapshot: drained routes leave, created ones come as provisioning, pointers and status move.

    `stopping`: drained routes stay as terminating until `stopped`, as they really do.
    """
    one = classified.deployment
    ended = classified.revision is not RevisionMove.KEEP
    return replace(
        one,
        status=classified.to,
        current_revision_id=one.deploying_revision_id
        if classified.revision is RevisionMove.SWAP
        else one.current_revision_id,
        deploying_revision_id=None if ended else one.deploying_revision_id,
        paused_at=None if ended else one.paused_at,
        desired_replicas=classified.desired_replicas,
        version=one.version + classified.changes_anything,
        phase_started_at=one.phase_started_at if classified.to == one.status else now,
        phase_attempts=classified.attempts,
        rollout=None if ended or one.rollout is None else _rollout(one, one.rollout, classified, now),
        degraded_reason=classified.degraded_reason,
        retry_at=classified.retry_at,
        routes=changed(one.routes, classified.changes, now, number_from=one.version * 1000, stopping=stopping),
    )


def changed(
    routes: tuple[Route, ...], changes: RouteChanges, now: datetime, *, number_from: int, stopping: bool = False
) -> tuple[Route, ...]:
    """The routes after the changes; drained ones are gone at once, or stopping. New ids count up from `number_from`."""
    promoted, parked, drained = (
        set(ids) for ids in (changes.promote_route_ids, changes.park_route_ids, changes.drain_route_ids)
    )

    def after(route: Route) -> Route:
        if route.id in drained:
            return replace(route, status=RouteStatus.TERMINATING, traffic=TrafficStatus.INACTIVE, status_changed_at=now)
        if route.id in parked:
            return replace(route, traffic=TrafficStatus.INACTIVE, parked_until=changes.park_until)
        return replace(route, traffic=TrafficStatus.ACTIVE, parked_until=None) if route.id in promoted else route

    kept = tuple(after(route) for route in routes if stopping or route.id not in drained)
    wanted = [spec for spec in changes.rollout_specs for _ in range(spec.count)]
    return kept + tuple(
        Route(UUID(int=number_from + i), spec.revision_id, RouteStatus.PROVISIONING, spec.traffic, now, now)
        for i, spec in enumerate(wanted)
    )


def stopped(deployment: Deployment) -> Deployment:
    """Every replica that was stopping is gone."""
    left = tuple(route for route in deployment.routes if route.status is not RouteStatus.TERMINATING)
    return replace(deployment, routes=left)


def _rollout(one: Deployment, rollout: Rollout, classified: ClassifiedDecision, now: datetime) -> Rollout:
    stood_still = timedelta() if classified.clock_stopped else clock_stood_still(one, now)
    old = {route.id for route in one.routes if route.revision_id != one.deploying_revision_id}
    old_ones_leave = not old.isdisjoint(classified.changes.drain_route_ids)
    return replace(
        rollout,
        deadline=rollout.deadline + stood_still,
        last_progress_at=now if old_ones_leave else rollout.last_progress_at + stood_still,
        clock_stopped_at=(rollout.clock_stopped_at or now) if classified.clock_stopped else None,
        steps=rollout.steps + classified.changes_anything,
    )


def with_status(
    deployment: Deployment, ids: Iterable[UUID], status: RouteStatus, now: datetime, *, fail_revision: bool = True
) -> Deployment:
    """What the probes write: the routes' next status; failed ones leave, and are counted as failed starts."""
    chosen = set(ids)
    if status is not RouteStatus.FAILED:
        routes = tuple(
            replace(route, status=status, status_changed_at=now) if route.id in chosen else route
            for route in deployment.routes
        )
        return replace(
            deployment,
            routes=routes,
            rollout=_progress(deployment, chosen, status, now),
            start_failures=_after_success(deployment, chosen, status),
        )
    for route in (route for route in deployment.routes if route.id in chosen):
        deployment = _failed(deployment, route, now) if fail_revision else deployment
    return replace(deployment, routes=tuple(route for route in deployment.routes if route.id not in chosen))


def _progress(deployment: Deployment, chosen: set[UUID], status: RouteStatus, now: datetime) -> Rollout | None:
    rollout = deployment.rollout
    if rollout is None or status is not RouteStatus.HEALTHY:
        return rollout
    new = any(route.id in chosen and route.revision_id == rollout.to_revision_id for route in deployment.routes)
    return replace(rollout, last_progress_at=now) if new else rollout


def _after_success(deployment: Deployment, chosen: set[UUID], status: RouteStatus) -> StartFailures | None:
    failures = deployment.start_failures
    if failures is None or status is not RouteStatus.HEALTHY:
        return failures
    started = {route.revision_id for route in deployment.routes if route.id in chosen}
    return None if failures.revision_id in started else failures


def _failed(deployment: Deployment, route: Route, now: datetime) -> Deployment:
    before = deployment.start_failures
    same = before is not None and before.revision_id == route.revision_id
    in_a_row = before.in_a_row + 1 if before is not None and same else 1
    rollout = deployment.rollout
    if rollout is not None and route.revision_id == rollout.to_revision_id:
        rollout = replace(rollout, failed_routes=rollout.failed_routes + 1)
    return replace(deployment, rollout=rollout, start_failures=StartFailures(route.revision_id, in_a_row, last_at=now))


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
