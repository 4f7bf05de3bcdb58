"""The budgets, as the tests see them: what they count, and what a decision may do to it.

Parked routes are outside the ceiling. What a cycle brings into traffic and what it takes out counts together.
"""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from domain.cycle.effects import routes_after
from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.model.deployment import Deployment, Route
from domain.model.states import DeploymentSubStep, Lifecycle, RouteStatus
from tests.support.worlds.promised import promised


def target_of(deployment: Deployment) -> UUID:
    """The revision that should run."""
    forward = deployment.status.sub_step is DeploymentSubStep.PROVISIONING
    target = deployment.deploying_revision_id if forward else deployment.current_revision_id
    assert target is not None
    return target


def is_parked(route: Route, target: UUID, now: datetime) -> bool:
    """Of another revision, or asleep, and kept for a way back until later than now: outside of every budget."""
    is_kept = route.parked_until is not None and route.parked_until > now and not route.is_misplaced
    return is_kept and (route.revision_id != target or route.has_lent)


def counted(deployment: Deployment, now: datetime) -> int:
    """What the ceiling counts: live ones that are not parked, and stopping ones if the budget says so."""
    target, count_stopping = target_of(deployment), promised(deployment).count_stopping
    stopping = sum(route.status is RouteStatus.TERMINATING for route in deployment.routes)
    live = sum(not is_parked(route, target, now) for route in deployment.active_routes)
    return live + (stopping if count_stopping else 0)


def check_safety(decision: ClassifiedDecision, now: datetime) -> None:
    """Of one decision: no more than the ceiling by our own creations, no fewer than keep by our own drains.

    What is parked of another revision stays until its time, unless nothing may run beside the target.
    """
    before, changes = decision.deployment, decision.changes
    if before.status.lifecycle not in (Lifecycle.SCALING, Lifecycle.DEPLOYING):
        assert not changes or before.status.lifecycle is Lifecycle.DESTROYING, decision.reason
        return
    budget, count = promised(before), counted(before, now)
    keep = budget.keep_after(promotion=decision.revision is RevisionMove.SWAP)
    ceiling = budget.ceiling
    if before.rollout is not None and before.stands_still:  # what stands still has the size of before, or of now
        at_start = promised(replace(before, desired_replicas=before.rollout.desired_at_start))
        ceiling = max(ceiling, at_start.ceiling)
    assert count + changes.created <= max(ceiling, count), decision.reason
    serving = {route.id for route in before.routes if route.is_serving}
    taken = serving & {*changes.drain_route_ids, *changes.park_route_ids}
    left = sum(route.is_serving for route in routes_after(before.routes, changes, now))
    assert not taken or left >= keep, decision.reason
    others = (route for route in before.active_routes if route.revision_id != before.current_revision_id)
    kept = {route.id for route in others if is_parked(route, target_of(before), now)}
    assert budget.alone or not kept & set(changes.drain_route_ids), decision.reason
