"""What would be decided if something were otherwise: other settings, more failures, another count. Nothing is touched.

completed, rolled_back   it would end so
goes_back                a deadline has passed, or too many have failed
moves                    replicas are created, drained, promoted or parked
waits, waits_for_person  nothing is done now
error                    the decision raises
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from domain.cycle.after import turns_back
from domain.cycle.evaluator import EVALUATOR
from domain.cycle.rollout import rollout_of
from domain.cycle.transitions import ClassifiedDecision, RevisionMove
from domain.foresight.plan.world import cycle, with_status
from domain.model.deployment import Deployment, RouteStatus, Verdict
from domain.steering.verbs import scale
from domain.strategies import parse_policy
from domain.strategies.buckets import worst_first


@dataclass(frozen=True, slots=True)
class Supposing:
    """What is otherwise. `spec`: settings of the strategy, by name. `failures`: so many new replicas more fail now."""

    desired: int | None = None
    strategy: str | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    failures: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the next look would decide; routes by their place in the snapshot, counted from 0."""

    outcome: str
    create: int
    drain: tuple[int, ...]
    promote: tuple[int, ...]
    park: tuple[int, ...]
    why: str

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def what_if(deployment: Deployment, now: datetime) -> Answer:
    """The decision that the shipped handler would make of this snapshot."""
    decision = cycle(deployment, now)
    places = {route.id: place for place, route in enumerate(deployment.routes)}
    changes = decision.changes
    return Answer(
        comes_to(decision, now),
        changes.created,
        _places(changes.drain_route_ids, places),
        _places(changes.promote_route_ids, places),
        _places(changes.park_route_ids, places),
        decision.reason,
    )


def supposed(deployment: Deployment, supposing: Supposing, now: datetime) -> Deployment:
    """The snapshot with what is supposed. Raises InvalidInputError for settings, NoRolloutError where none is on."""
    if supposing.desired is not None:
        deployment = scale(deployment, supposing.desired).deployment
    if supposing.strategy is not None or supposing.spec:
        deployment = _with_policy(deployment, supposing)
    return _with_failures(deployment, supposing.failures, now) if supposing.failures else deployment


def comes_to(decision: ClassifiedDecision, now: datetime) -> str:
    """One word for what the decision comes to, by the list above."""
    match decision.verdict, decision.revision:
        case Verdict.SUCCESS, RevisionMove.SWAP:
            return "completed"
        case Verdict.SUCCESS, RevisionMove.CLEAR:
            return "rolled_back"
        case Verdict.ERROR, _:
            return "error"
        case Verdict.SKIPPED, _:
            return "waits_for_person" if decision.clock_stopped and not _goes_on(decision.deployment, now) else "waits"
    return "goes_back" if turns_back(decision) else "moves"


def _goes_on(deployment: Deployment, now: datetime) -> bool:
    """Whether it does so by itself: when what holds it ends, or the look at a canary."""
    if deployment.paused_at is not None or deployment.rollout is None:
        return False
    return deployment.hold is not None or EVALUATOR.goes_on(deployment.rollout, now) is not None


def _with_policy(deployment: Deployment, supposing: Supposing) -> Deployment:
    rollout = rollout_of(deployment, "suppose settings of")
    policy = rollout.policy.as_json()
    strategy = supposing.strategy or policy["strategy"]
    spec = policy["spec"] if strategy == policy["strategy"] else {}
    supposed_policy = parse_policy(
        {"strategy": strategy, "spec": {**spec, **supposing.spec}, "limits": policy["limits"]}
    )
    return replace(deployment, rollout=replace(rollout, policy=supposed_policy))


def _with_failures(deployment: Deployment, failures: int, now: datetime) -> Deployment:
    """Those that are starting fail first, then the sick, then the healthy; more than there are count all the same."""
    rollout = rollout_of(deployment, "suppose failures of")
    new = [route for route in deployment.active_routes if route.revision_id == rollout.to_revision_id]
    starting = [route for route in new if route.status is RouteStatus.PROVISIONING]
    others = worst_first(route for route in new if route.status is not RouteStatus.PROVISIONING)
    failing = [route.id for route in (*starting, *others)][:failures]
    deployment = with_status(deployment, failing, RouteStatus.FAILED, now)
    rollout = rollout_of(deployment, "suppose failures of")
    beyond = failures - len(failing)
    return replace(deployment, rollout=replace(rollout, failed_routes=rollout.failed_routes + beyond))


def _places(ids: tuple[UUID, ...], places: Mapping[UUID, int]) -> tuple[int, ...]:
    return tuple(places[route_id] for route_id in ids)
