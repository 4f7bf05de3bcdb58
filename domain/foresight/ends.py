"""What ends a wait by itself, if nothing else does: the clock that runs out first, and what happens then."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.cycle.rollout import with_clock_running
from domain.foresight.blocked import buckets_of, target_of
from domain.foresight.plan.world import handler_of
from domain.model.deployment import Deployment, DeploymentSubStep, Lifecycle, Route
from domain.strategies.backoff import next_start_at
from domain.strategies.buckets import Buckets, grace_ends_at

NEVER = "no clock ends this wait"


@dataclass(frozen=True, slots=True)
class End:
    """`what` happens `at` that time; None: no time is set."""

    at: datetime | None
    what: str


def end_of(deployment: Deployment, due_at: datetime | None, now: datetime) -> End:
    """What the clock says that a wait is looked at again for, at `due_at`."""
    if due_at is None:
        return End(None, NEVER)
    known = next((what for at, what in _clocks(deployment, now) if at == due_at), "a worker looks again")
    return End(due_at, known)


def route_name(route: Route) -> str:
    """The last 8 digits of its id, as everywhere: the first ones are a time, which routes of one rollout share."""
    return route.id.hex[-8:]


def promoted_at(deployment: Deployment, buckets: Buckets) -> datetime | None:
    """When a complete green set gets the traffic by itself; None where it does not, or is not complete."""
    rollout, complete = deployment.rollout, len(buckets.ready) >= deployment.desired_replicas
    is_forward = deployment.status.sub_step is DeploymentSubStep.PROVISIONING
    if rollout is None or not is_forward or not complete or not getattr(rollout.policy.spec, "auto_promote", False):
        return None
    return max((route.status_changed_at + promote_delay(deployment) for route in buckets.ready), default=None)


def promote_delay(deployment: Deployment) -> timedelta:
    """How long a complete green set must be healthy before it is promoted by itself."""
    spec = deployment.rollout.policy.spec if deployment.rollout else None
    return timedelta(seconds=getattr(spec, "promote_delay_seconds", 0))


def _clocks(deployment: Deployment, now: datetime) -> Iterator[tuple[datetime, str]]:
    """The deadlines first: what ends more than the wait is what one must know."""
    yield from _deadlines(deployment, now)
    if deployment.retry_at is not None:
        yield deployment.retry_at, "it is tried again"
    if deployment.start_failures is not None:
        yield next_start_at(deployment.start_failures), "the next start is tried"
    target = target_of(deployment)
    if target is not None:
        yield from _of_replicas(deployment, buckets_of(deployment, target, now))


def _deadlines(deployment: Deployment, now: datetime) -> Iterator[tuple[datetime, str]]:
    rollout = deployment.rollout
    running = replace(deployment, rollout=with_clock_running(rollout, now)) if rollout else deployment
    follows = "it is called degraded and tried again later" if rollout is None else "the rollout goes back"
    if deployment.status.lifecycle is not Lifecycle.DESTROYED:
        for deadline in handler_of(deployment).bounds(running).deadlines:
            yield deadline.at, f"{follows}: {deadline.what} has passed"


def _of_replicas(deployment: Deployment, buckets: Buckets) -> Iterator[tuple[datetime, str]]:
    if (at := promoted_at(deployment, buckets)) is not None:
        yield at, "green is promoted"
    for route in buckets.sick:
        yield grace_ends_at(route), f"route {route_name(route)} is replaced"
    if buckets.next_ready_at is not None:
        yield buckets.next_ready_at, "it has been healthy for min_ready_seconds"
    for route in buckets.parked:
        if route.parked_until is not None:
            yield route.parked_until, "what is parked is stopped"
