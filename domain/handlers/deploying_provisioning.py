"""deploying/provisioning: the strategy of the rollout leads from the current revision to the deploying one.

the strategy says: completed                            -> ready, the revisions swap
it moved, waits, or is held                             -> stays
a deadline passed, too many failed, or it gave up       -> deploying/rolling_back
"""

from datetime import datetime, timedelta
from functools import lru_cache

from domain.bounds import Bounds, Deadline
from domain.changes import Decision
from domain.counts import RouteCounts
from domain.evaluator import EVALUATOR
from domain.events import DeploymentLifecycleType, DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.handlers.base import DeploymentHandler
from domain.model import Deployment, DeploymentSubStep
from domain.rollout import PROVISIONING, READY, ROLLING_BACK
from domain.transitions import (
    ClassifiedDecision,
    DeploymentStatusTransitions,
    RevisionMove,
    Transition,
)

_BACK = Transition(ROLLING_BACK)


class DeployingProvisioningHandler(DeploymentHandler):
    name = "deploying_provisioning"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.DEPLOYING, DeploymentSubStep.PROVISIONING)
    cadence = DeploymentTaskSpec(short=5, long=30)
    lock_id = "deploying"
    targets = frozenset({PROVISIONING})
    transitions = DeploymentStatusTransitions(
        success=Transition(READY, RevisionMove.SWAP, degraded=False),
        expired=_BACK,
        give_up=_BACK,
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        return EVALUATOR.evaluate_one(deployment, now)

    def glance(self, deployment: Deployment, counts: RouteCounts, now: datetime) -> ClassifiedDecision | None:
        rollout = deployment.rollout
        if rollout is None or deployment.paused_at is not None or deployment.hold is not None:
            return None
        strategy = EVALUATOR.strategy_of(rollout.policy)
        if strategy is None:
            return None
        wait = strategy.wait_by_counts(rollout.policy.spec, deployment.desired_replicas, counts)
        if wait is None:
            return None
        classified = self.classified(wait, deployment, now)
        return None if classified.changes_anything else classified

    def bounds(self, deployment: Deployment) -> Bounds:
        rollout = deployment.rollout
        if rollout is None:
            return Bounds()
        limits = rollout.policy.limits
        deadlines = [Deadline(rollout.deadline, _timeout(limits.timeout_seconds))]
        if limits.progress_timeout_seconds is not None:
            ends = rollout.last_progress_at + timedelta(seconds=limits.progress_timeout_seconds)
            deadlines.append(Deadline(ends, f"the {limits.progress_timeout_seconds:g} s allowed without progress"))
        allowed = limits.failures_allowed(deployment.desired_replicas)
        return Bounds(tuple(deadlines), rollout.failed_routes, allowed, rollout.last_failure)


@lru_cache(maxsize=64)  # of a whole fleet's cycles hardly one needs the sentence
def _timeout(seconds: float) -> str:
    return f"the timeout of {seconds:g} s"
