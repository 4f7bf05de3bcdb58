"""deploying: the strategy leads to the deploying revision, or back to the current one, within one budget."""

from datetime import datetime

from domain.cycle.evaluator import EVALUATOR
from domain.cycle.transitions import (
    STAY,
    Bounds,
    DeploymentStatusTransitions,
    Glimpse,
    RevisionMove,
    Transition,
    Wait,
    bounds_of,
    wait_of,
)
from domain.handlers.base import DeploymentHandler
from domain.model.decision import Decision
from domain.model.deployment import Deployment
from domain.model.lifecycle_events import DeploymentLifecycleType, DeploymentTaskSpec, DoDeploymentLifecycleEvent
from domain.model.states import PROVISIONING, READY, ROLLING_BACK, DeploymentSubStep

_BACK = Transition(ROLLING_BACK)


class DeployingProvisioningHandler(DeploymentHandler):
    """deploying/provisioning: the strategy replaces the current revision by the deploying one, step by step.

    the strategy says that it is completed                  -> ready; the deploying revision becomes the current one
    it changes routes, waits, or is held                    -> stays
    a deadline has passed, too many replicas have failed,
    or the strategy gives up                                -> deploying/rolling_back
    """

    name = "deploying_provisioning"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.DEPLOYING, DeploymentSubStep.PROVISIONING)
    cadence = DeploymentTaskSpec(short=5, long=30)
    lock_id = "deploying"
    targets = frozenset({PROVISIONING})
    transitions = DeploymentStatusTransitions(
        success=Transition(READY, RevisionMove.SWAP, degraded=False), expired=_BACK, give_up=_BACK
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        return EVALUATOR.evaluate_one(deployment, now)

    def glance(self, glimpse: Glimpse, now: datetime) -> Wait | None:
        policy = glimpse.policy
        strategy = EVALUATOR.strategy_of(policy)
        wait = None if glimpse.stands else strategy.wait_by_counts(policy.spec, glimpse.desired, glimpse.counts)
        return wait_of(wait, bounds_of(glimpse.rollout, policy.limits, glimpse.desired), now) if wait else None

    def bounds(self, deployment: Deployment) -> Bounds:
        rollout = deployment.rollout
        return bounds_of(rollout, rollout.policy.limits, deployment.desired_replicas) if rollout else Bounds()


class DeployingRollingBackHandler(DeploymentHandler):
    """deploying/rolling_back: the strategy leads back to the current revision, within the same budget.

    it is paused                             -> stays; what dies is replaced
    routes of another revision are live, or
    the current revision is incomplete       -> stays; it goes back step by step, and no deadline ends that
    no replica is left, nor comes up         -> ready, but degraded
    only the current revision is live, and
    it is complete                           -> ready; the deploying revision is cleared
    """

    name = "deploying_rolling_back"
    event = DoDeploymentLifecycleEvent(DeploymentLifecycleType.DEPLOYING, DeploymentSubStep.ROLLING_BACK)
    cadence = DeploymentTaskSpec(short=5, long=30)
    lock_id = "deploying"
    targets = frozenset({ROLLING_BACK})
    transitions = DeploymentStatusTransitions(
        success=Transition(READY, RevisionMove.CLEAR, degraded=False),
        expired=Transition(READY, RevisionMove.CLEAR, degraded=True),
        give_up=STAY,
    )

    def decide(self, deployment: Deployment, now: datetime) -> Decision:
        return EVALUATOR.evaluate_back(deployment, now)
