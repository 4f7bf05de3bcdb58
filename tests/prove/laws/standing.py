"""What holds while a rollout is held or paused, in the words of who looks at it: it goes nowhere, and stays whole."""

from collections.abc import Iterator

from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.model.deployment import Deployment, DeploymentSubStep, Rollout, Route, RouteStatus, Verdict
from domain.strategies.buckets import SICK_GRACE_SECONDS
from tests.prove.state import State
from tests.support.pictures.safety import counted, is_parked, target_of
from tests.support.worlds.promised import promised


def broken_by_standing(state: State, decision: ClassifiedDecision) -> Iterator[str]:
    """Judged by the deployment as the decision saw it; what ends the rollout, such as harm, is not standing."""
    before = decision.deployment
    rollout = before.rollout
    if rollout is None or not (before.paused_at or before.hold) or decision.verdict is Verdict.GIVE_UP:
        return
    changes = decision.changes
    if changes.stage is not None or changes.park_route_ids or decision.revision is not RevisionMove.KEEP:
        yield "while it is held or paused nobody gets more or less of the requests, and no revision takes over"
    new = [route for route in before.active_routes if route.revision_id == rollout.to_revision_id]
    weighs = rollout.canary is not None and rollout.canary.weight
    if not new and not weighs and any(spec.revision_id == rollout.to_revision_id for spec in changes.rollout_specs):
        yield "while it is held or paused no first replica of the new revision starts, but for one that had requests"
    if any(route.id in changes.promote_route_ids for route in new) and rollout.policy.strategy == "blue_green":
        yield "while it is held or paused green gets no requests"
    yield from _exchanged(state, decision, rollout)
    if not changes:
        yield from _abandoned(state, before, rollout)


def _exchanged(state: State, decision: ClassifiedDecision, rollout: Rollout) -> Iterator[str]:
    before = decision.deployment
    own = [route for route in before.active_routes if route.revision_id == before.current_revision_id]
    leaving = [route for route in own if route.is_serving and route.id in decision.changes.drain_route_ids]
    too_many = counted(before, state.now) > promised(before).ceiling or len(own) > _wanted(before, rollout)
    if leaving and not too_many:
        yield "while it is held or paused no old replica that serves leaves, unless there are too many"


def _abandoned(state: State, before: Deployment, rollout: Rollout) -> Iterator[str]:
    """Nothing is done: then nobody is missing, or there is no room, or one starts, or its next try comes later."""
    only_blue = rollout.policy.strategy == "blue_green"
    current = before.current_revision_id
    live = [route for route in before.active_routes if not is_parked(route, target_of(before), state.now)]
    side = [route for route in live if route.revision_id == current] if only_blue else live
    well = [route for route in side if not _is_sick_too_long(state, route)]
    if len(well) >= _wanted(before, rollout) or any(route.status is RouteStatus.PROVISIONING for route in live):
        return
    failures, budget = before.start_failures, promised(before)
    held_back = failures is not None and failures.came_up_at is None
    stops = [route for route in before.routes if route.status is RouteStatus.TERMINATING]
    if not held_back and counted(before, state.now) < budget.ceiling and not (stops and budget.alone):
        yield "what dies is replaced, also while it is held or paused"


def _wanted(before: Deployment, rollout: Rollout) -> int:
    if rollout.policy.strategy == "blue_green" or before.status.sub_step is DeploymentSubStep.ROLLING_BACK:
        return rollout.desired_at_start
    return min(before.desired_replicas, rollout.desired_at_start)


def _is_sick_too_long(state: State, route: Route) -> bool:
    sick = route.status in (RouteStatus.UNHEALTHY, RouteStatus.DEGRADED)
    return sick and (state.now - route.status_changed_at).total_seconds() >= SICK_GRACE_SECONDS
