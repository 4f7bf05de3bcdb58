"""Until a new revision has answered somebody, its rollout is not proven, and the last old replicas stay at hand.

n = desired; "old" are those of the current revision, to which a way back leads. Those that a cycle would drain as the
last old ones are parked, as many as fit beside n new ones:

    nobody asks the service, or somebody was answered   -> drained
    an undo, count_stopping, or no limit of unanswered  -> drained
    n is 0, or it was parked before                     -> drained
    another old one stays                               -> drained
    otherwise                                           -> ceiling - n of the healthy ones are parked, the rest drained

They are parked once, for unanswered_within_seconds, until the first answer.

rolling update, surge 1:   ■|■■  →  □|■■■ done    blue-green:   ■■|□□  →  □□|■■ done    recreate: ceiling n, none
"""

from dataclasses import replace
from datetime import datetime, timedelta

from domain.model.decision import Decision, RouteChanges
from domain.model.deployment import Deployment, Rollout
from domain.model.states import RouteStatus
from domain.strategies.buckets import ids, worst_first
from domain.strategies.budget import Budget


def is_unproven(rollout: Rollout) -> bool:
    """Whether somebody asks, and the new revision has answered nobody; never where nobody would undo it for that."""
    limits = rollout.policy.limits
    is_asked = rollout.in_use and rollout.unanswered is not None and not rollout.is_undo
    return is_asked and limits.unanswered is not None and limits.unanswered_within_seconds > 0


def with_old_at_hand(decision: Decision, deployment: Deployment, budget: Budget, now: datetime) -> Decision:
    """Return the decision with the last old replicas parked, where there is room."""
    rollout, drained = deployment.rollout, set(decision.changes.drain_route_ids)
    if rollout is None or not drained or not budget.desired or budget.count_stopping:
        return decision
    current = [route for route in deployment.active_routes if route.revision_id == deployment.current_revision_id]
    old = [route for route in current if route.parked_until is None]
    if any(route.id not in drained for route in old):
        return decision
    well = [r for r in worst_first(old) if r.id in drained and r.status is RouteStatus.HEALTHY and not r.is_misplaced]
    kept = ids(well[max(0, len(well) - budget.ceiling + budget.desired) :])
    if not kept:
        return decision
    until = now + timedelta(seconds=rollout.policy.limits.unanswered_within_seconds)
    stays = tuple(route_id for route_id in decision.changes.drain_route_ids if route_id not in kept)
    changes = replace(decision.changes, drain_route_ids=stays) + RouteChanges.park(kept, until)
    return replace(decision, changes=changes, reason=f"{decision.reason}; {len(kept)} of them parked until it answers")
