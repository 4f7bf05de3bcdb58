"""Finds the transitions that are cloud events, from a deployment before and after."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from domain.cycle.effects import deployment_after
from domain.cycle.transitions import ClassifiedDecision
from domain.cycle.writes import DecisionEffects
from domain.model.deployment import Deployment
from domain.model.states import ROLLING_BACK, Lifecycle, RolloutOutcome, TrafficStatus
from domain.steering.command_effect import Context, Effect


class CloudEventType(StrEnum):
    """The `type` of a CloudEvent, and of a subscription."""

    DEPLOYMENT_CREATED = "rollway.deployment.created"
    DEPLOYMENT_ACTIVATED = "rollway.deployment.activated"
    DEPLOYMENT_SCALED = "rollway.deployment.scaled"
    DEPLOYMENT_DEGRADED = "rollway.deployment.degraded"
    DEPLOYMENT_RECOVERED = "rollway.deployment.recovered"
    DEPLOYMENT_DESTROYING = "rollway.deployment.destroying"
    DEPLOYMENT_DESTROYED = "rollway.deployment.destroyed"
    ROLLOUT_BEGUN = "rollway.rollout.begun"
    ROLLOUT_PAUSED = "rollway.rollout.paused"
    ROLLOUT_RESUMED = "rollway.rollout.resumed"
    ROLLOUT_WAITING = "rollway.rollout.waiting"
    ROLLOUT_PROMOTED = "rollway.rollout.promoted"
    ROLLOUT_TURNED_BACK = "rollway.rollout.turned_back"
    ROLLOUT_COMPLETED = "rollway.rollout.completed"
    ROLLOUT_ROLLED_BACK = "rollway.rollout.rolled_back"
    ROLLOUT_SUPERSEDED = "rollway.rollout.superseded"
    ROLLOUT_DESTROYED = "rollway.rollout.destroyed"
    RECEIPT_SEALED = "rollway.receipt.sealed"
    REPLICA_FAILED = "rollway.replica.failed"
    REPLICA_KILLED = "rollway.replica.killed"


MEANINGS: Mapping[CloudEventType, str] = {
    CloudEventType.DEPLOYMENT_CREATED: "a deployment was created",
    CloudEventType.DEPLOYMENT_ACTIVATED: "its first revision was activated, or another one without a rollout",
    CloudEventType.DEPLOYMENT_SCALED: "another number of replicas is wanted, by a person, a rule or a rollout",
    CloudEventType.DEPLOYMENT_DEGRADED: "its replicas do not come up; it is tried again more slowly",
    CloudEventType.DEPLOYMENT_RECOVERED: "it is no longer degraded: it is whole again, or a person has it tried again",
    CloudEventType.DEPLOYMENT_DESTROYING: "it is being destroyed",
    CloudEventType.DEPLOYMENT_DESTROYED: "its last replica is gone, and so is the deployment",
    CloudEventType.ROLLOUT_BEGUN: "a rollout to another revision has started",
    CloudEventType.ROLLOUT_PAUSED: "a person holds the rollout where it is",
    CloudEventType.ROLLOUT_RESUMED: "a paused rollout continues",
    CloudEventType.ROLLOUT_WAITING: "the rollout waits for a person, and its timeouts are paused",
    CloudEventType.ROLLOUT_PROMOTED: "the traffic moved to the new revision at once",
    CloudEventType.ROLLOUT_TURNED_BACK: "it failed, or a person left it, and goes back to the revision from before",
    CloudEventType.ROLLOUT_COMPLETED: "the new revision runs alone",
    CloudEventType.ROLLOUT_ROLLED_BACK: "the revision from before runs alone again",
    CloudEventType.ROLLOUT_SUPERSEDED: "another rollout took its place",
    CloudEventType.ROLLOUT_DESTROYED: "its deployment is being destroyed",
    CloudEventType.RECEIPT_SEALED: "a rollout that ended has its receipt, whose hash it tells: keep it elsewhere",
    CloudEventType.REPLICA_FAILED: "a replica ended unasked, did not come up, or its host is lost",
    CloudEventType.REPLICA_KILLED: "a replica that leaves did not end within its grace, so its requests were cut off",
}


@dataclass(frozen=True, slots=True)
class CloudEvent:
    """A transition that subscribers get. `rollout_id` None: the rollout that is under way then, if any.

    `sentence`: what happened and why, for people. `route_id`: of the replica, where it is about one.
    """

    type: CloudEventType
    deployment_id: UUID
    actor: str
    sentence: str
    rollout_id: UUID | None = None
    route_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class _Change:
    """A deployment before and after; how a rollout ended by it, and whether traffic moved to the new revision.

    `asks`: whether a person is waited for, who was not before.
    """

    before: Deployment
    after: Deployment
    outcome: RolloutOutcome | None = None
    promoted: bool = False
    asks: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether the rollout from before is still the one under way."""
        old, new = self.before.rollout, self.after.rollout
        return old is not None and new is not None and old.id == new.id

    def becomes(self, lifecycle: Lifecycle) -> bool:
        """Whether it is there now and was elsewhere."""
        return self.after.status.lifecycle is lifecycle is not self.before.status.lifecycle


_ENDS: Mapping[RolloutOutcome, CloudEventType] = {
    RolloutOutcome.COMPLETED: CloudEventType.ROLLOUT_COMPLETED,
    RolloutOutcome.ROLLED_BACK: CloudEventType.ROLLOUT_ROLLED_BACK,
    RolloutOutcome.SUPERSEDED: CloudEventType.ROLLOUT_SUPERSEDED,
    RolloutOutcome.DESTROYED: CloudEventType.ROLLOUT_DESTROYED,
}

_RULES: Mapping[CloudEventType, Callable[[_Change], bool]] = {
    CloudEventType.DEPLOYMENT_DESTROYING: lambda change: change.becomes(Lifecycle.DESTROYING),
    CloudEventType.DEPLOYMENT_DESTROYED: lambda change: change.becomes(Lifecycle.DESTROYED),
    CloudEventType.DEPLOYMENT_ACTIVATED: lambda change: (
        change.before.current_revision_id != change.after.current_revision_id
        and change.outcome is not RolloutOutcome.COMPLETED
    ),
    CloudEventType.ROLLOUT_BEGUN: lambda change: change.after.rollout is not None and not change.goes_on,
    CloudEventType.ROLLOUT_PAUSED: lambda change: (
        change.before.paused_at is None and change.after.paused_at is not None
    ),
    CloudEventType.ROLLOUT_RESUMED: lambda change: (
        change.goes_on and change.before.paused_at is not None and change.after.paused_at is None
    ),
    CloudEventType.ROLLOUT_TURNED_BACK: lambda change: (
        change.goes_on and change.after.status == ROLLING_BACK != change.before.status
    ),
    CloudEventType.ROLLOUT_WAITING: lambda change: change.asks and change.after.paused_at is None,
    CloudEventType.DEPLOYMENT_SCALED: lambda change: change.before.desired_replicas != change.after.desired_replicas,
    CloudEventType.DEPLOYMENT_DEGRADED: lambda change: _turns(change.after, change.before),
    CloudEventType.DEPLOYMENT_RECOVERED: lambda change: _turns(change.before, change.after),
}
"""The events in the order in which they are sent, after those of the rollout from before."""


def told_by_decisions(
    effects: Iterable[DecisionEffects], phase: str, now: datetime, waiting_before: Collection[UUID] = ()
) -> tuple[CloudEvent, ...]:
    """The events of a handler's decisions. `waiting_before`: the deployments that waited for a person before.

    Steps that bring nothing into traffic are told to nobody: most of them.
    """
    return tuple(event for each in effects for event in _told_by(each, phase, now, waiting_before))


def _told_by(
    effect: DecisionEffects, phase: str, now: datetime, waiting_before: Collection[UUID]
) -> tuple[CloudEvent, ...]:
    decision = effect.decision
    asks = effect.waits_for is not None and decision.deployment.id not in waiting_before
    if not (effect.deployment or decision.changes.promote_route_ids or asks):
        return ()
    deployment = effect.deployment or deployment_after(decision, effect.rollout, now)
    change = _Change(decision.deployment, deployment, effect.outcome, _promotes(decision), asks)
    return _events(change, phase, decision.reason)


def told_by_command(before: Deployment, effect: Effect, asking: Context, actor: str) -> tuple[CloudEvent, ...]:
    sentence = f"{effect.sentence} {asking.why}".strip()
    return _events(_Change(before, effect.deployment, effect.ended), actor, sentence)


def _events(change: _Change, actor: str, sentence: str) -> tuple[CloudEvent, ...]:
    rollout = change.before.rollout
    of_rollout = [CloudEventType.ROLLOUT_PROMOTED] if change.promoted else []
    if change.outcome is not None:
        of_rollout.append(_ENDS[change.outcome])
    others = [kind for kind, holds_for in _RULES.items() if holds_for(change)]
    return (
        *(CloudEvent(kind, change.after.id, actor, sentence, rollout.id) for kind in of_rollout if rollout is not None),
        *(CloudEvent(kind, change.after.id, actor, sentence) for kind in others),
    )


def _turns(is_degraded: Deployment, is_not: Deployment) -> bool:
    return is_degraded.degraded_reason is not None and is_not.degraded_reason is None


def _promotes(decision: ClassifiedDecision) -> bool:
    """Whether it brings the first routes of the new revision into traffic, which were kept out of it until then."""
    before = decision.deployment
    if not before.status.goes_forward or not decision.changes.promote_route_ids:
        return False
    new = (route for route in before.active_routes if route.revision_id == before.deploying_revision_id)
    return not any(route.traffic is TrafficStatus.ACTIVE for route in new)
