"""What stays whole, in the words of who looks at it: what dies is replaced, and what is held or paused goes nowhere."""

from collections.abc import Iterator
from datetime import datetime

from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.model.deployment import Deployment, Rollout, Route
from domain.model.states import DeploymentSubStep, Lifecycle, RouteStatus, Verdict
from domain.strategies.budget import SICK_GRACE_SECONDS
from domain.strategies.in_place import free_devices
from tests.support.pictures.pictures import PROVISIONING, ROLLING_BACK
from tests.support.pictures.safety import counted, is_parked, target_of
from tests.support.worlds.promised import promised
from tools.prove.state import State


def broken_by_standing(state: State, decision: ClassifiedDecision) -> Iterator[str]:
    """Judged by the deployment as the decision saw it; what ends the rollout, such as harm, is not standing."""
    before = decision.deployment
    rollout = before.rollout
    if decision.verdict is Verdict.SKIPPED and not decision.changes:
        yield from _abandoned(state, before)
    if rollout is None:
        return
    changes = decision.changes
    leaves = before.status == ROLLING_BACK and rollout.policy.strategy != "recreate"
    if leaves and any(spec.revision_id == rollout.to_revision_id for spec in changes.rollout_specs):
        yield "on the way back nothing starts of the revision that it leaves"
    if not _stands(state, decision, rollout) or decision.verdict is Verdict.GIVE_UP:
        return
    if _moves_requests(rollout, decision, is_paused=before.paused_at is not None):
        yield "while it is held or paused nobody gets more or less of the requests, and no revision takes over"
    new = [route for route in before.active_routes if route.revision_id == rollout.to_revision_id]
    is_there = rollout.canary is not None and (rollout.canary.weight or rollout.canary.stage)
    if not new and not is_there and any(spec.revision_id == rollout.to_revision_id for spec in changes.rollout_specs):
        yield "while it is held or paused no first new replica starts, but for one that had requests or copies"
    if any(route.id in changes.promote_route_ids for route in new) and rollout.policy.strategy == "blue_green":
        yield "while it is held or paused green gets no requests"
    yield from _exchanged(state, decision, rollout)


def _moves_requests(rollout: Rollout, decision: ClassifiedDecision, *, is_paused: bool) -> bool:
    """What an earlier try has left may fall, as on the way back, where no person has paused it."""
    stage, canary = decision.changes.stage, rollout.canary
    falls = stage and canary and stage.number == canary.stage == 0 and (stage.weight or 0) < (canary.weight or 0)
    moves = stage is not None and (is_paused or not falls)
    return moves or bool(decision.changes.park_route_ids) or decision.revision is not RevisionMove.KEEP


def _stands(state: State, decision: ClassifiedDecision, rollout: Rollout) -> bool:
    """Paused, or in a freeze but for an undo and the way back; what was decided before it is still done."""
    before = decision.deployment
    frozen = state.frozen and before.status == PROVISIONING and not rollout.is_undo
    return before.paused_at is not None or (frozen and decision is not state.held)


def _exchanged(state: State, decision: ClassifiedDecision, rollout: Rollout) -> Iterator[str]:
    before = decision.deployment
    own = [route for route in before.active_routes if route.revision_id == before.current_revision_id]
    leaving = [route for route in own if route.is_serving and route.id in decision.changes.drain_route_ids]
    too_many = counted(before, state.now) > promised(before).ceiling or len(own) > _wanted(before, rollout)
    serving = sum(route.is_serving for route in before.active_routes) - len(leaving)
    stays = any(route.is_serving and route not in leaving for route in own)
    moves = all(route.is_misplaced for route in leaving) and stays and serving >= _least(before, rollout)
    if leaving and not too_many and not moves:
        yield "while it is held or paused no old replica that serves leaves, unless there are too many, or it is moved"


def _abandoned(state: State, before: Deployment) -> Iterator[str]:
    """Nothing is done: then nobody is missing, or there is no room, or one starts, or its next try comes later."""
    if before.status.lifecycle in (Lifecycle.PENDING, Lifecycle.DESTROYING, Lifecycle.DESTROYED):
        return
    rollout, current, target = before.rollout, before.current_revision_id, target_of(before)
    live = [route for route in before.active_routes if not is_parked(route, target, state.now)]
    has_green = rollout is not None and rollout.policy.strategy == "blue_green"
    side = [route for route in live if route.revision_id == current] if has_green else live
    well = [route for route in side if not is_sick_too_long(route, state.now)]
    if len(well) >= _wanted(before, rollout) or any(route.status is RouteStatus.PROVISIONING for route in live):
        return
    failures, budget = before.start_failures, promised(before)
    given_up = before.retry_at is not None and before.retry_at > state.now
    later = given_up or (failures is not None and failures.came_up_at is None)
    stops = [route for route in before.routes if route.status is RouteStatus.TERMINATING]
    green = [route for route in live if route.revision_id == before.deploying_revision_id and not route.is_serving]
    too_many = max(0, len(green) - before.desired_replicas) if has_green else 0
    taken = counted(before, state.now) - too_many
    counts = budget.count_stopping or before.devices is not None
    if not later and taken < budget.ceiling and not (stops and counts) and free_devices(before) != 0:
        yield "what dies is replaced, wherever it is in its life, and also while it is held or paused"


def _least(before: Deployment, rollout: Rollout) -> int:
    """As at rest: what is moved leaves all that are wanted, or one less where there is no room for one more."""
    budget, wanted = promised(before), _wanted(before, rollout)
    return wanted if budget.ceiling > budget.desired else max(0, wanted - 1)


def _wanted(before: Deployment, rollout: Rollout | None) -> int:
    if rollout is None:
        return before.desired_replicas
    if rollout.policy.strategy == "blue_green" or before.status.sub_step is DeploymentSubStep.ROLLING_BACK:
        return rollout.desired_at_start
    if before.stands_still and not rollout.steps:
        return rollout.desired_at_start
    return min(before.desired_replicas, rollout.desired_at_start)


def is_sick_too_long(route: Route, now: datetime) -> bool:
    sick = route.status in (RouteStatus.UNHEALTHY, RouteStatus.DEGRADED)
    return sick and (now - route.status_changed_at).total_seconds() >= SICK_GRACE_SECONDS
