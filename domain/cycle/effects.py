"""The effect of a decision: the next snapshot of its deployment, which `db` copies into rows.

This changes in its rollout:

deadlines      it waits for a person or is held    they stop
               otherwise                           they run; stopped ones move by the time that they stood still
last progress  an old route is drained, or the     now
               weight falls to what old ones leave
failures       an unhealthy new route is drained   one more, since it had to be replaced
weight         a stage of a canary begins          the weight of the stage, which no proxy knows yet
               the rollout turns back              less, then none
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.model.canary import CanaryState
from domain.model.decision import RouteChanges, Stage
from domain.model.deployment import Deployment, Rollout, Route
from domain.model.states import PREPARING, ROLLING_BACK, RouteStatus, TrafficStatus


def with_clock_stopped(rollout: Rollout, now: datetime) -> Rollout:
    """Stop the deadlines while the rollout waits for a person or is held."""
    return rollout if rollout.clock_stopped_at else replace(rollout, clock_stopped_at=now)


def with_clock_running(rollout: Rollout, now: datetime) -> Rollout:
    """Start the deadlines again: they move by the time that they stood still, less after progress at p.

    progress ──10 s── stopped ──60 s── now             the last progress is still 10 s ago
    stopped ──20 s── progress at p ──40 s── now        the last progress is now, and not 20 s ahead
    """
    stopped_at = rollout.clock_stopped_at
    if stopped_at is None:
        return rollout
    return replace(
        rollout,
        deadline=rollout.deadline + (now - stopped_at),
        last_progress_at=rollout.last_progress_at + (now - max(stopped_at, rollout.last_progress_at)),
        clock_stopped_at=None,
    )


def after(decision: ClassifiedDecision, now: datetime) -> Deployment:
    """The whole next snapshot. A new route has a placeholder until Postgres gives it an id."""
    before = decision.deployment
    deployment = deployment_after(decision, rollout_after(decision, now), now)
    return replace(deployment, routes=routes_after(before.routes, decision.changes, now))


def deployment_after(decision: ClassifiedDecision, rollout: Rollout | None, now: datetime) -> Deployment:
    """The next deployment, with the routes from before."""
    before, stays = decision.deployment, decision.revision is RevisionMove.KEEP
    swapped = decision.revision is RevisionMove.SWAP
    autoscaled = before.rollout is None and decision.desired_replicas != before.desired_replicas
    return Deployment(
        id=before.id,
        name=before.name,
        desired_replicas=decision.desired_replicas,
        status=decision.to,
        current_revision_id=before.deploying_revision_id if swapped else before.current_revision_id,
        deploying_revision_id=before.deploying_revision_id if stays else None,
        version=before.version + decision.changes_anything,
        phase_started_at=before.phase_started_at if decision.to == before.status else now,
        phase_attempts=decision.attempts,
        paused_at=before.paused_at if stays else None,
        rollout=rollout if stays else None,
        start_failures=before.start_failures,
        degraded_reason=decision.degraded_reason,
        retry_at=decision.retry_at,
        routes=before.routes,
        autoscaling=replace(before.autoscaling, last_at=now) if autoscaled else before.autoscaling,
        count_stopping=before.count_stopping,
        may_surge=before.may_surge,
        preparations=before.preparations if decision.to == PREPARING else (),
        devices=before.devices,
    )


def rollout_after(decision: ClassifiedDecision, now: datetime) -> Rollout | None:
    before = decision.deployment.rollout
    if before is None:
        return None
    clock = with_clock_stopped(before, now) if decision.clock_stopped else with_clock_running(before, now)
    if not decision.changes_anything:
        return clock
    drained = {route_id.int for route_id in decision.changes.drain_route_ids}  # numbers are found faster than ids
    routes = [route for route in decision.deployment.routes if route.id.int in drained] if drained else []
    rollout = replace(
        before,
        last_progress_at=now if _is_progress(routes, before, decision.changes.stage) else clock.last_progress_at,
        deadline=clock.deadline,
        failed_routes=before.failed_routes + _replaced(routes, decision.deployment),
        steps=before.steps + decision.is_step,
        clock_stopped_at=clock.clock_stopped_at,
    )
    if stage := decision.changes.stage:
        rollout = _at_stage(rollout, stage)
    if not turns_back(decision):
        return rollout
    return EVALUATOR.sent_back(decision.deployment, rollout, at_once=decision.harms)


def _at_stage(rollout: Rollout, stage: Stage) -> Rollout:
    """Begin a stage. A promotion applies to the next stage, not to a weight within the present one."""
    canary = rollout.canary or CanaryState()
    requested = rollout.promote_requested and canary.is_at(stage.number)
    return replace(rollout, canary=canary.at(stage.number, stage.weight), promote_requested=requested)


def turns_back(decision: ClassifiedDecision) -> bool:
    return decision.to == ROLLING_BACK != decision.deployment.status


def back_reason_of(decision: ClassifiedDecision) -> str | None:
    """Why this decision begins the way back; None if it does not."""
    return decision.reason if turns_back(decision) else None


def routes_after(routes: Iterable[Route], changes: RouteChanges, now: datetime) -> tuple[Route, ...]:
    """Apply the changes. Drained routes are stopping; created ones are starting and come last."""
    promoted, parked, drained = (
        set(ids) for ids in (changes.promote_route_ids, changes.park_route_ids, changes.drain_route_ids)
    )
    woken = dict(changes.woken)

    def changed_route(route: Route) -> Route:
        if route.id in drained:
            return replace(route, status=RouteStatus.TERMINATING, traffic=TrafficStatus.INACTIVE, status_changed_at=now)
        if route.id in parked:
            return replace(route, traffic=TrafficStatus.INACTIVE, parked_until=changes.park_until)
        if route.id in woken:
            return replace(route, traffic=woken[route.id], parked_until=None, has_lent=False)
        return replace(route, traffic=TrafficStatus.ACTIVE, parked_until=None) if route.id in promoted else route

    remaining = tuple(map(changed_route, routes))
    free = max((route.id.int for route in remaining), default=0) + 1
    created = [spec for spec in changes.rollout_specs for _ in range(spec.count)]
    return remaining + tuple(
        Route(UUID(int=free + number), spec.revision_id, RouteStatus.PROVISIONING, spec.traffic, now, now)
        for number, spec in enumerate(created)
    )


def _is_progress(drained: Iterable[Route], rollout: Rollout, stage: Stage | None) -> bool:
    weight = (rollout.canary and rollout.canary.weight) or 0
    falls = stage is not None and stage.weight is not None and stage.weight < weight
    return falls or any(route.revision_id != rollout.to_revision_id for route in drained)


def _replaced(drained: Iterable[Route], before: Deployment) -> int:
    """Count drained new replicas that are unhealthy. On the way back none counts."""
    if not before.status.goes_forward:
        return 0
    new = [route for route in drained if route.revision_id == before.deploying_revision_id]
    return sum(route.status is RouteStatus.UNHEALTHY for route in new)
